"""Messages of two to four facts, what a person does with one of them, and a question about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    text: str
    word: str  # of the fact that changes
    other: str  # of another fact, which stays
    new: str  # text of the fact after an edit
    question: str
    later: str  # message that ends the fact
    now: str  # word of the later message that answers the question


ENGLISH = (
    Told(
        "I live in Utrecht. My cat is called Biscuit. I do the accounts for a bakery.",
        "Utrecht", "Biscuit", "I live in Zwolle.",
        "Where do I live?", "I moved to Arnhem last weekend.", "Arnhem",
    ),
    Told(
        "I'm Noor, I live in Malmö and work at Klarna.",
        "Klarna", "Malmö", "I work at Spotify.",
        "Where do I work?", "I now work at Volvo.", "Volvo",
    ),
    Told(
        "My phone number is 555-0182. My sister Odile is a vet. We have a cabin in Jämtland.",
        "555-0182", "Odile", "My phone number is 555-0199.",
        "What is my phone number?", "My phone number is now 555-0147.", "555-0147",
    ),
    Told(
        "hey so i live in cardiff now and my flatmate is called ewan, he is a chef",
        "cardiff", "ewan", "I live in Swansea.",
        "Where do I live?", "I moved to Bristol.", "Bristol",
    ),
    Told(
        "My dentist is Dr Abara. I am allergic to penicillin. My blood type is A negative.",
        "Abara", "penicillin", "My dentist is Dr Lindqvist.",
        "Who is my dentist?", "My dentist is now Dr Moreau.", "Moreau",
    ),
    Told(
        "I drive a Skoda. I park it behind the library. My office is on the third floor.",
        "Skoda", "third floor", "I drive a Mazda.",
        "What car do I drive?", "I drive a Peugeot now.", "Peugeot",
    ),
    Told(
        "I've been working at Nokia for six years and I live in Espoo with my two boys.",
        "Nokia", "Espoo", "I work at Kone.",
        "Where do I work?", "I left Nokia, I now work at Wolt.", "Wolt",
    ),
    Told(
        "My manager is called Priya. Our stand-up is at nine. The wiki is on the old server.",
        "Priya", "nine", "My manager is called Helen.",
        "Who is my manager?", "My manager is now Tobias.", "Tobias",
    ),
    Told(
        "I pay 1,150 euros of rent. My landlord lives in Spain. The boiler is from 2009.",
        "1,150", "Spain", "I pay 1,200 euros of rent.",
        "How much rent do I pay?", "My rent went up to 1,290 euros.", "1,290",
    ),
    Told(
        "my favourite colour is teal and i play the cello, my teacher is from riga",
        "teal", "cello", "My favourite colour is amber.",
        "What is my favourite colour?", "My favourite colour is now crimson.", "crimson",
    ),
    Told(
        "My email is noor@larkmail.example. I read it in the mornings. I like short answers.",
        "noor@larkmail.example", "short answers", "My email is noor@finchmail.example.",
        "What is my email address?", "My email is now noor@wrenmail.example.", "noor@wrenmail.example",
    ),
    Told(
        "My son Matteo goes to Oakfield School. My daughter Pia is two. We eat at six.",
        "Oakfield", "Pia", "My son Matteo goes to Riverside School.",
        "Which school does Matteo go to?", "My son Matteo goes to Hillcrest School now.", "Hillcrest",
    ),
    Told(
        "My flight to Lisbon is on 4 May. I have a window seat. My aunt Carla picks me up.",
        "4 May", "Carla", "My flight to Lisbon is on 6 May.",
        "When is my flight to Lisbon?", "My flight to Lisbon was moved to 9 May.", "9 May",
    ),
    Told(
        "So, long story, I finally got round to it. I joined a gym called Ironhouse. It is pricey. My trainer is Gus.",
        "Ironhouse", "Gus", "I joined a gym called Northside.",
        "Which gym do I go to?", "I cancelled Ironhouse and joined a gym called Fitbase.", "Fitbase",
    ),
    Told(
        "I'm vegetarian. My wife is not. We cook together on Sundays.",
        "vegetarian", "Sundays", "I'm vegan.",
        "What is my diet?", "I'm not vegetarian any more, I eat everything.", "everything",
    ),
    Told(
        "I weigh 81 kg. I run three times a week. My goal is a half marathon in Ghent.",
        "81 kg", "Ghent", "I weigh 79 kg.",
        "How much do I weigh?", "I weigh 77 kg now.", "77 kg",
    ),
    Told(
        "Our wifi password is plumtree44. The router is in the hall. Guests use the other network.",
        "plumtree44", "router", "Our wifi password is plumtree55.",
        "What is our wifi password?", "Our wifi password was changed to cherry90.", "cherry90",
    ),
    Told(
        "My girlfriend is called Ines, she is from Porto. I speak a little Portuguese. I hate fado.",
        "Ines", "fado", "My girlfriend is called Marta.",
        "What is the name of my girlfriend?", "Ines and I broke up, my girlfriend is now Lotte.", "Lotte",
    ),
    Told(
        "i study biology at ghent and i share a house on rooigem lane with four people and my exam is in june",
        "biology", "rooigem", "I study chemistry.",
        "What do I study?", "I switched to law, I study law now.", "law",
    ),
    Told(
        "My locker code is 4471. The pool closes at ten. My swimming friend is called Jun.",
        "4471", "Jun", "My locker code is 5520.",
        "What is my locker code?", "My locker code is now 8306.", "8306",
    ),
)  # fmt: skip

CHINESE = (
    Told(
        "我住在绍兴。我家的猫叫年糕。我每天骑车上班。",
        "绍兴", "年糕", "我住在嘉兴。", "我住在哪里？", "我上周搬到了湖州。", "湖州",
    ),
    Told(
        "我叫阿宁，住在佛山，在美的上班。",
        "美的", "佛山", "我在格力上班。", "我在哪里上班？", "我现在在海尔上班。", "海尔",
    ),
    Told(
        "我的手机号是13800001234。我妹妹是护士。我家在三楼。",
        "13800001234", "护士", "我的手机号是13800005678。",
        "我的手机号是多少？", "我的手机号换成了13900004321。", "13900004321",
    ),
    Told(
        "我住在泉州，在安踏工作，养了一只柯基叫土豆。",
        "泉州", "土豆", "我住在漳州。", "我住在哪里？", "我上个月搬到了莆田，现在在特步工作", "莆田",
    ),
    Told(
        "我老板姓陆。我们周三开例会。我对花生过敏。",
        "陆", "花生", "我老板姓顾。", "我老板姓什么？", "我老板换成姓贺的了。", "贺",
    ),
    Told(
        "我家的车是本田。我把车停在地下二层。我平时不喝酒。",
        "本田", "地下二层", "我家的车是丰田。", "我家的车是什么？", "本田卖了，我现在开一辆理想。", "理想",
    ),
    Told(
        "嗯那个我跟你说啊我住在洛阳然后我在一拖上班我儿子今年上三年级",
        "洛阳", "三年级", "我住在开封。", "我住在哪里？", "我搬到新乡了。", "新乡",
    ),
    Told(
        "我的房租是3200。房东住在国外。我室友叫阿杰。",
        "3200", "阿杰", "我的房租是3400。", "我的房租是多少？", "我的房租涨到3600了。", "3600",
    ),
    Told(
        "我女儿在晨光小学读书。我儿子两岁。我们六点吃晚饭。",
        "晨光小学", "两岁", "我女儿在启明小学读书。",
        "我女儿在哪里读书？", "我女儿现在在育才小学读书。", "育才小学",
    ),
    Told(
        "我的邮箱是ning@qq.example。我早上看邮件。我喜欢简短的回答。",
        "ning@qq.example", "简短", "我的邮箱是ning@163.example。",
        "我的邮箱是什么？", "我的邮箱改成ning@sina.example了。", "ning@sina.example",
    ),
    Told(
        "我最喜欢的颜色是墨绿。我在学二胡。我的老师是西安人。",
        "墨绿", "二胡", "我最喜欢的颜色是橙色。",
        "我最喜欢的颜色是什么？", "我最喜欢的颜色现在是藏青。", "藏青",
    ),
    Told(
        "我女朋友叫小棠。她是厦门人。我会一点闽南话。",
        "小棠", "闽南话", "我女朋友叫小满。", "我女朋友叫什么？", "我和小棠分手了，我现在的女朋友叫小鹿。", "小鹿",
    ),
    Told(
        "我体重72公斤。我每周跑三次步。我想跑无锡马拉松。",
        "72公斤", "无锡", "我体重70公斤。", "我体重多少？", "我体重现在是69公斤。", "69公斤",
    ),
    Told(
        "我家wifi密码是plum2024。路由器在客厅。客人用另一个网络。",
        "plum2024", "路由器", "我家wifi密码是plum2025。",
        "我家wifi密码是什么？", "我家wifi密码改成cherry88了。", "cherry88",
    ),
    Told(
        "我去昆明的航班是5月4日。我选了靠窗的座位。我姑姑来接我。",
        "5月4日", "姑姑", "我去昆明的航班是5月6日。",
        "我去昆明的航班是哪天？", "我去昆明的航班改到5月9日了。", "5月9日",
    ),
    Told(
        "我在读生物专业。我和四个人合租。我六月考试。",
        "生物", "合租", "我在读化学专业。", "我读什么专业？", "我转到法学专业了，我现在读法学。", "法学",
    ),
    Told(
        "我吃素。我老公不吃素。我们周日一起做饭。",
        "我吃素", "周日", "我只吃鱼不吃肉。", "我的饮食习惯是什么？", "我不再吃素了，现在什么都吃。", "什么都吃",
    ),
    Told(
        "说来话长，反正我办了健身卡。健身房叫铁馆。有点贵。我的教练叫阿虎。",
        "铁馆", "阿虎", "我的健身房叫北岸。", "我的健身房叫什么？", "我退了铁馆，新健身房叫飞燕。", "飞燕",
    ),
    Told(
        "我的储物柜密码是4471。泳池十点关门。我的泳友叫小俊。",
        "4471", "小俊", "我的储物柜密码是5520。", "我的储物柜密码是多少？", "我的储物柜密码现在是8306。", "8306",
    ),
    Told(
        "我们公司用飞书。我的工位在五楼窗边。我中午吃食堂。",
        "飞书", "食堂", "我们公司用钉钉。", "我们公司用什么软件？", "我们公司不用飞书了，现在用企业微信。", "企业微信",
    ),
)  # fmt: skip
MESSAGES = (*ENGLISH, *CHINESE)
