"""Simulated users: a year of conversations with an assistant, and questions about them.

Half of the users speak Chinese. Every session has a unique event (with a name, a number, a place), attributes (home,
work, drink, phone) that are stated, repeated or changed, and small talk.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

ATTRIBUTES = ("home", "work", "drink", "phone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A question and the words that its answer must contain."""

    question: str
    answer: str
    stated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    user_id: str
    session_id: str
    at: datetime
    messages: list[dict[str, str]]
    planted: tuple[Planted, ...]
    current: dict[str, str]  # current values by attribute


@dataclass(frozen=True, slots=True)
class Words:
    """Texts of one language."""

    people: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    animals: tuple[str, ...]
    relatives: tuple[str, ...]
    titles: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    tell: dict[str, str]
    change: dict[str, str]
    ask: dict[str, str]
    events: tuple[tuple[str, str, str], ...]  # statement, question, and the field that answers it
    small_talk: tuple[str, ...]
    questions: tuple[str, ...]
    replies: tuple[str, ...]


ENGLISH = Words(
    people=(
        "Daniel Hofer",
        "Priya Nair",
        "Tom Beckett",
        "Lucia Romano",
        "Omar Haddad",
        "Greta Lindqvist",
        "Ben Okafor",
        "Marta Silva",
        "Jonas Weber",
        "Aiko Tanaka",
        "Ruth Adler",
        "Pavel Novak",
    ),
    places=(
        "Riverside Lane",
        "Market Hall",
        "Elm Court",
        "the Blue Lantern",
        "Harbour Street",
        "Castle Hill",
        "Mill Road",
        "the Old Tannery",
        "Queens Park",
        "Station Yard",
        "Birch Alley",
        "North Pier",
    ),
    things=(
        "bicycle",
        "laptop",
        "watch",
        "piano",
        "sofa",
        "camera",
        "dishwasher",
        "guitar",
        "tent",
        "printer",
        "kayak",
        "coffee machine",
        "record player",
        "sewing machine",
        "telescope",
        "lawn mower",
        "fridge",
        "violin",
        "scooter",
        "heater",
        "drill",
        "toaster",
        "projector",
        "suitcase",
        "microphone",
        "armchair",
        "blender",
        "lamp",
        "boiler",
        "keyboard",
        "motorbike",
        "radio",
        "typewriter",
        "treadmill",
        "accordion",
        "chainsaw",
        "wheelbarrow",
        "globe",
    ),
    animals=(
        "geese",
        "spiders",
        "horses",
        "bats",
        "snakes",
        "wasps",
        "dogs",
        "mice",
        "frogs",
        "cats",
        "moths",
        "crabs",
    ),
    relatives=("sister", "brother", "aunt", "uncle", "cousin", "grandmother", "nephew", "niece", "mother-in-law"),
    titles=(
        "Silent Harbour",
        "The Glass Orchard",
        "Nine Winters",
        "Salt and Amber",
        "A Room of Clocks",
        "Paper Rivers",
        "The Last Ferry",
        "Under Copper Skies",
        "Northbound",
        "The Beekeeper's Map",
        "Ashes of June",
        "Small Hours",
    ),
    values={
        "home": ("Leeds", "Lisbon", "Toronto", "Hamburg", "Bergen", "Valencia"),
        "work": ("Novatec", "Brightwell", "Corvid Labs", "Aldermoor", "Sunfield", "Kestrel Bank"),
        "drink": ("oat latte", "green tea", "espresso", "ginger ale", "hot chocolate", "iced lemon tea"),
        "phone": ("Pixel 8", "iPhone 15", "Galaxy S24", "Fairphone 5", "Xperia 10", "Nothing 2"),
    },
    tell={
        "home": "I live in {value}.",
        "work": "I work at {value}.",
        "drink": "My favourite drink is {value}.",
        "phone": "My phone is a {value}.",
    },
    change={
        "home": "I moved to {value} yesterday.",
        "work": "I work at {value} now.",
        "drink": "My favourite drink is {value} now.",
        "phone": "My phone is a {value} now.",
    },
    ask={
        "home": "Where do I live?",
        "work": "Where do I work?",
        "drink": "What is my favourite drink?",
        "phone": "What phone do I have?",
    },
    events=(
        (
            "My {thing} was repaired by {person} at {place}, it cost {number} euros.",
            "What did the repair of my {thing} cost?",
            "number",
        ),
        ("I bought a used {thing} from {person} for {number} dollars.", "Who sold me the {thing}?", "person"),
        (
            "{person} recommended the book {title} to me, I finished it in {small} days.",
            "Who recommended {title}?",
            "person",
        ),
        (
            "I met {person} at {place}, we talked about my {thing} for {small} hours.",
            "Where did I talk with {person} about my {thing}?",
            "place",
        ),
        ("My {relative} is afraid of {animal}.", "What is my {relative} afraid of?", "animal"),
        ("I lent my {thing} to {person}, she brings it back in {small} weeks.", "Who has my {thing}?", "person"),
    ),
    small_talk=(
        "Good morning!",
        "Thanks, that helps.",
        "Haha, good one.",
        "I am a bit tired today.",
        "Nice weather, finally.",
        "Okay, sounds good.",
        "See you later.",
        "Work was exhausting again.",
        "I just had lunch.",
    ),
    questions=(
        "Can you explain how inflation works?",
        "What should I cook tonight?",
        "How do I write a cover letter?",
        "Any tips for sleeping better?",
        "Could you summarise this article for me?",
    ),
    replies=(
        "Of course, happy to help.",
        "Sure! Start with a short list and go from there.",
        "That sounds interesting, tell me more.",
        "Here are a few ideas: keep it simple and take breaks.",
        "Got it, I will keep that in mind.",
        "You are welcome!",
    ),
)
CHINESE = Words(
    people=("林晓梅", "张伟", "王芳", "陈浩", "刘洋", "赵敏", "周杰", "吴磊", "孙丽", "马超", "郭靖宇", "何佳"),
    places=(
        "人民路",
        "中山公园",
        "老街茶馆",
        "万达广场",
        "西湖边",
        "火车站旁",
        "大学城",
        "南京东路",
        "三里屯",
        "江边码头",
        "城隍庙",
        "科技园",
    ),
    things=(
        "自行车",
        "笔记本电脑",
        "手表",
        "钢琴",
        "沙发",
        "相机",
        "洗碗机",
        "吉他",
        "帐篷",
        "打印机",
        "皮划艇",
        "咖啡机",
        "唱片机",
        "缝纫机",
        "望远镜",
        "割草机",
        "冰箱",
        "小提琴",
        "滑板车",
        "取暖器",
        "电钻",
        "烤面包机",
        "投影仪",
        "行李箱",
        "麦克风",
        "扶手椅",
        "榨汁机",
        "台灯",
        "热水器",
        "键盘",
        "摩托车",
        "收音机",
        "打字机",
        "跑步机",
        "手风琴",
        "电锯",
        "手推车",
        "地球仪",
    ),
    animals=("鹅", "蜘蛛", "马", "蝙蝠", "蛇", "黄蜂", "狗", "老鼠", "青蛙", "猫", "飞蛾", "螃蟹"),
    relatives=("姐姐", "哥哥", "姑姑", "舅舅", "表弟", "奶奶", "侄子", "外甥女", "岳母"),
    titles=(
        "静默港湾",
        "玻璃果园",
        "九个冬天",
        "盐与琥珀",
        "满屋的钟",
        "纸河",
        "最后的渡轮",
        "铜色天空下",
        "向北",
        "养蜂人的地图",
        "六月灰烬",
        "深夜时分",
    ),
    values={
        "home": ("成都", "杭州", "青岛", "厦门", "西安", "昆明"),
        "work": ("星河科技", "蓝鲸传媒", "远山资本", "云帆教育", "鼎新医药", "橙果游戏"),
        "drink": ("燕麦拿铁", "龙井茶", "美式咖啡", "姜汁汽水", "热可可", "柠檬红茶"),
        "phone": ("小米14", "iPhone 15", "华为Mate 60", "荣耀100", "一加12", "vivo X100"),
    },
    tell={
        "home": "我住在{value}。",
        "work": "我在{value}工作。",
        "drink": "我最喜欢的饮料是{value}。",
        "phone": "我的手机是{value}。",
    },
    change={
        "home": "我昨天搬到{value}了。",
        "work": "我现在在{value}工作。",
        "drink": "我现在最喜欢的饮料是{value}。",
        "phone": "我的手机是{value}。",
    },
    ask={
        "home": "我住在哪里？",
        "work": "我在哪里工作？",
        "drink": "我最喜欢的饮料是什么？",
        "phone": "我用的是什么手机？",
    },
    events=(
        ("我的{thing}是{person}在{place}修好的，花了{number}元。", "修{thing}花了多少钱？", "number"),
        ("我从{person}那里买了一台二手{thing}，花了{number}元。", "谁把{thing}卖给我的？", "person"),
        ("{person}给我推荐了《{title}》这本书，我{small}天就看完了。", "谁推荐了《{title}》？", "person"),
        ("我在{place}见了{person}，聊了{small}个小时的{thing}。", "我和{person}在哪里聊{thing}的？", "place"),
        ("我{relative}怕{animal}。", "我{relative}怕什么？", "animal"),
        ("我把{thing}借给{person}了，他{small}周后还。", "我的{thing}在谁那里？", "person"),
    ),
    small_talk=(
        "早上好！",
        "谢谢，很有用。",
        "哈哈哈。",
        "今天有点累。",
        "天气终于好了。",
        "好的，就这样。",
        "回头聊。",
        "上班又累死了。",
        "刚吃完午饭。",
    ),
    questions=(
        "能解释一下通货膨胀吗？",
        "今晚做什么菜好？",
        "求职信怎么写？",
        "怎样睡得更好？",
        "能帮我总结一下这篇文章吗？",
    ),
    replies=(
        "当然，很乐意帮忙。",
        "好的！先列一个简短的清单吧。",
        "听起来很有意思，多说一点。",
        "有几个建议：保持简单，多休息。",
        "明白，我会记住的。",
        "不客气！",
    ),
)


def life(number: int, *, seed: int, start: datetime, days: int, every_days: float) -> Iterator[Session]:
    """Yield the sessions of one user in order."""
    rng = random.Random(f"{seed}:{number}")
    words = CHINESE if number % 2 else ENGLISH
    user_id = f"user-{number:02d}"
    current = {name: rng.choice(words.values[name]) for name in ATTRIBUTES}
    known: set[str] = set()
    used: set[str] = set()
    day, count = rng.uniform(0, 2), 0
    while day < days:
        at = start + timedelta(days=day, hours=rng.uniform(8, 20) - 8)
        said: list[str] = [rng.choice(words.small_talk)]
        for name in ATTRIBUTES:
            if name not in known and rng.random() < 0.7:
                said.append(words.tell[name].format(value=current[name]))
                known.add(name)
            elif name in known and rng.random() < 0.03:
                current[name] = rng.choice([value for value in words.values[name] if value != current[name]])
                said.append(words.change[name].format(value=current[name]))
            elif name in known and rng.random() < 0.08:
                said.append(words.tell[name].format(value=current[name]))
        planted = []
        for _ in range(rng.randint(1, 2)):
            event = _event(rng, words, used)
            if event is not None:
                said.append(event[0])
                planted.append(Planted(question=event[1], answer=event[2], stated_at=at))
        said += rng.sample(words.small_talk, rng.randint(0, 2)) + rng.sample(words.questions, rng.randint(0, 1))
        rng.shuffle(said)
        yield Session(
            user_id=user_id,
            session_id=f"{user_id}-{count:03d}",
            at=at,
            messages=list(_turns(rng, words, said, at)),
            planted=tuple(planted),
            current={name: current[name] for name in sorted(known)},
        )
        count += 1
        day += rng.uniform(0.5, 1.5) * every_days


def _event(rng: random.Random, words: Words, used: set[str]) -> tuple[str, str, str] | None:
    """Return an unused statement with its question and answer; None if all are used."""
    for _ in range(20):
        statement, asked, answer = rng.choice(words.events)
        values = {
            "thing": rng.choice(words.things),
            "person": rng.choice(words.people),
            "place": rng.choice(words.places),
            "animal": rng.choice(words.animals),
            "relative": rng.choice(words.relatives),
            "title": rng.choice(words.titles),
            "number": str(rng.randint(21, 990)),
            "small": str(rng.randint(2, 9)),
        }
        question = asked.format(**values)
        if question not in used:
            used.add(question)
            return statement.format(**values), question, values[answer]
    return None


def _turns(rng: random.Random, words: Words, said: list[str], at: datetime) -> Iterator[dict[str, str]]:
    for place, text in enumerate(said):
        moment = at + timedelta(minutes=2 * place)
        yield {"role": "user", "content": text, "timestamp": moment.isoformat()}
        reply = moment + timedelta(minutes=1)
        yield {"role": "assistant", "content": rng.choice(words.replies), "timestamp": reply.isoformat()}
