"""What was so and is no longer, told in plain words over months: a line is a day, what was said, a word that must be
remembered ten days later, and one that must not (· for none). A blank line begins another story. Read by
test_changes.py."""

STORIES = """
2024-01-10 | 我住在杭州。 | 杭州 | ·
2024-05-03 | 我上个月搬到了苏州，离公司近。 | 苏州 | 杭州
2024-11-20 | 我们下个月初就搬去深圳住了。 | 苏州 | 杭州
2025-02-01 | 搬到深圳一个多月了，慢慢习惯了。 | 深圳 | 苏州

2024-01-10 | 我吃素，已经三年了。 | 吃素 | ·
2024-06-01 | 跟你说一声，我不吃素了。 | 不吃素 | 三年
2024-12-01 | 医生让我改吃低碳饮食。 | 低碳 | ·

2024-01-10 | 我在一家银行做数据分析师。 | 银行 | ·
2024-07-01 | 我从银行离职了。 | · | 做数据分析师
2024-09-01 | 上周入职了一家游戏公司，当产品经理。 | 游戏公司 | 做数据分析师

2024-01-10 | 我用的是小米14。 | 小米 | ·
2024-10-01 | 手机换成iPhone 16了。 | iPhone | 用的是小米

2024-01-10 | 我每天早上喝一杯美式。 | 美式 | ·
2024-05-01 | 最近胃不好，咖啡戒了，改喝红茶。 | 红茶 | 每天早上喝一杯美式

2024-01-10 | 我写代码用Vim。 | Vim | ·
2024-05-01 | 我改用VS Code了，不再用Vim。 | VS Code | 写代码用Vim
2024-09-01 | 现在用Cursor，VS Code卸了。 | Cursor | 改用VS Code

2024-01-10 | 我女朋友叫小雯，在成都读研。 | 小雯 | ·
2024-06-01 | 我和小雯分手了。 | 分手 | 女朋友叫小雯

2024-01-10 | 我现在单身。 | 单身 | ·
2024-10-01 | 我上周结婚了！老婆叫晓彤。 | 结婚 | 现在单身

2024-01-10 | 我养了一只猫，叫年糕。 | 年糕 | ·
2024-08-01 | 年糕上个月走丢了，再也没回来。 | 走丢 | 养了一只猫

2024-01-10 | 我抽烟，一天一包。 | 抽烟 | ·
2024-05-01 | 我戒烟了。 | 戒烟 | 一天一包

2024-01-10 | 我每周二和周四去健身房。 | 周二 | ·
2024-04-01 | 健身时间改到周一和周三了。 | 周一 | 周二和周四去

2024-01-10 | 我对海鲜过敏。 | 海鲜 | ·
2024-12-01 | 查过了，我其实不对海鲜过敏，是对芒果过敏。 | 芒果 | 林梅对海鲜过敏

2024-01-10 | 我最喜欢的颜色是蓝色。 | 蓝色 | ·
2024-06-01 | 我现在最喜欢的颜色是绿色。 | 绿色 | 颜色是蓝色

2024-01-10 | 我很喜欢吃香菜。 | 香菜 | ·
2024-06-01 | 我现在不喜欢吃香菜了。 | 不喜欢吃香菜 | 很喜欢吃香菜

2024-01-10 | 我儿子在读五年级。 | 五年级 | ·
2024-09-02 | 儿子上六年级了。 | 六年级 | 读五年级
2025-09-02 | 儿子今天上初一了。 | 初一 | 六年级

2024-01-10 | 我体重78公斤。 | 78 | ·
2024-06-01 | 减到72公斤了。 | 72 | 体重78

2024-01-10 | 我月薪一万八。 | 一万八 | ·
2024-06-01 | 涨薪了，现在月薪两万二。 | 两万二 | 月薪一万八

2024-01-10 | 我的老板是张伟。 | 张伟 | ·
2024-06-01 | 张伟调走了，现在的老板是李娜。 | 李娜 | 老板是张伟

2024-01-10 | 项目截止日期是2024年3月15日。 | 3月15 | ·
2024-02-20 | 项目截止日期推迟到4月10日了。 | 4月10 | 截止日期是2024年3月15

2024-01-10 | 我开一辆本田思域。 | 思域 | ·
2024-06-01 | 车卖了，现在坐地铁上班。 | 地铁 | 开一辆本田

2024-01-10 | 我在学日语。 | 日语 | ·
2024-06-01 | 日语不学了，开始学西班牙语。 | 西班牙语 | 在学日语

2024-01-10 | 我一般十二点睡。 | 十二点 | ·
2024-06-01 | 现在改成十点半睡了。 | 十点半 | 十二点睡

2024-01-10 | 我每天骑车上班。 | 骑车 | ·
2024-11-01 | 天冷了，改坐公交上班。 | 公交 | 每天骑车

2024-01-10 | 我打算五月去日本。 | 日本 | ·
2024-04-01 | 日本不去了，改去泰国。 | 泰国 | 打算五月

2024-01-10 | 我们项目的数据库用MySQL。 | MySQL | ·
2024-06-01 | 我们把数据库从MySQL迁到PostgreSQL了。 | PostgreSQL | 数据库用MySQL
2024-12-01 | 数据库又换成了TiDB。 | TiDB | 从MySQL迁到

2024-01-10 | 叫我小林就行。 | 小林 | ·
2024-06-01 | 以后叫我林姐吧，别叫小林了。 | 林姐 | 叫我小林就行

2024-01-10 | 回答请用中文。 | 中文 | ·
2024-06-01 | 以后回答改用英文。 | 英文 | 请用中文

2024-01-10 | 我在吃二甲双胍，一天两次。 | 二甲双胍 | ·
2024-06-01 | 医生把二甲双胍停了。 | 停 | 在吃二甲双胍

2024-01-10 | 我在浙大读大三。 | 大三 | ·
2024-09-10 | 我现在大四了。 | 大四 | 读大三
2025-07-01 | 我毕业了！ | 毕业 | 现在大四

2024-01-10 | I live in Hangzhou. | Hangzhou | ·
2024-05-03 | Last month I moved to Suzhou. | Suzhou | lives in Hangzhou
2024-11-20 | We're moving to Shenzhen in January. | Suzhou | lives in Hangzhou
2025-02-01 | We've settled in Shenzhen now. | Shenzhen | moved to Suzhou

2024-01-10 | I've been a vegetarian for three years. | vegetarian | ·
2024-06-01 | By the way, I eat meat again. | meat | three years

2024-01-10 | I'm vegan. | vegan | ·
2024-06-01 | I'm not vegan anymore. | anymore | is vegan

2024-01-10 | I work as a data analyst at a bank. | analyst | ·
2024-07-01 | I quit my job at the bank. | quit | works as a data analyst
2024-09-01 | I started a new job as a product manager last week. | product manager | works as a data analyst

2024-01-10 | I work at Google. | Google | ·
2024-08-01 | I left Google for Anthropic. | Anthropic | works at Google
2025-01-05 | I'm back at Google. | Google | left Google for

2024-01-10 | I have a Pixel 7. | Pixel | ·
2024-10-01 | I switched to an iPhone 16. | iPhone | has a Pixel

2024-01-10 | I drink an americano every morning. | americano | ·
2024-05-01 | I gave up coffee, I drink black tea now. | tea | americano every

2024-01-10 | I use Vim for everything. | Vim | ·
2024-05-01 | I've switched from Vim to VS Code. | VS Code | uses Vim
2024-09-01 | I uninstalled VS Code, Cursor is my editor now. | Cursor | switched from Vim

2024-01-10 | My girlfriend is called Wendy. | Wendy | ·
2024-06-01 | Wendy and I broke up. | broke up | girlfriend is called

2024-01-10 | I'm single. | single | ·
2024-10-01 | I got married last week! My wife's name is Clara. | married | is single

2024-01-10 | I have a cat called Mochi. | Mochi | ·
2024-08-01 | Mochi died last month. | died | has a cat

2024-01-10 | I smoke a pack a day. | pack a day | ·
2024-05-01 | I quit smoking. | quit | smokes a pack
2024-08-01 | I started smoking again. | again | ·

2024-01-10 | I go to the gym on Tuesdays and Thursdays. | Tuesdays | ·
2024-04-01 | I go to the gym on Mondays and Wednesdays now. | Mondays | Tuesdays

2024-01-10 | I'm allergic to shellfish. | shellfish | ·
2024-12-01 | Turns out I'm not allergic to shellfish, it's mangoes. | mangoes | is allergic to shellfish

2024-01-10 | My favourite colour is blue. | blue | ·
2024-06-01 | My favourite colour is green now. | green | colour is blue

2024-01-10 | I love cilantro. | cilantro | ·
2024-06-01 | I don't like cilantro anymore. | anymore | loves cilantro

2024-01-10 | My son is in fifth grade. | fifth | ·
2024-09-02 | My son started sixth grade. | sixth | is in fifth

2024-01-10 | I weigh 78 kilos. | 78 | ·
2024-06-01 | I'm down to 72 kilos. | 72 | weighs 78

2024-01-10 | I make $80,000 a year. | 80,000 | ·
2024-06-01 | I got a raise, I make $95,000 now. | 95,000 | 80,000

2024-01-10 | My manager is Tom Becker. | Tom | ·
2024-06-01 | Tom left, my new manager is Priya. | Priya | manager is Tom

2024-01-10 | The project deadline is March 15, 2024. | March 15 | ·
2024-02-20 | The project deadline has been pushed to April 10. | April 10 | deadline is March 15

2024-01-10 | I drive a Honda Civic. | Civic | ·
2024-06-01 | I sold my car, I take the subway to work now. | subway | drives a Honda

2024-01-10 | I'm learning Japanese. | Japanese | ·
2024-06-01 | I stopped learning Japanese and started Spanish. | Spanish | is learning Japanese

2024-01-10 | I usually go to bed at midnight. | midnight | ·
2024-06-01 | I go to bed at half past ten now. | half past ten | midnight

2024-01-10 | I cycle to work every day. | cycle | ·
2024-11-01 | It's cold now, so I take the bus to work. | bus | cycles to work every

2024-01-10 | I'm planning to go to Japan in May. | Japan | ·
2024-04-01 | The Japan trip is off, we're going to Thailand instead. | Thailand | ·

2024-01-10 | Our project uses MySQL. | MySQL | ·
2024-06-01 | We migrated from MySQL to PostgreSQL. | PostgreSQL | uses MySQL
2024-12-01 | We've switched to TiDB. | TiDB | migrated from MySQL

2024-01-10 | Call me Lin. | Lin | ·
2024-06-01 | Please call me Mei from now on, not Lin. | Mei | to call them Lin

2024-01-10 | Please answer in German. | German | ·
2024-06-01 | From now on answer in English, please. | English | in German

2024-01-10 | I take metformin twice a day. | metformin | ·
2024-06-01 | My doctor took me off metformin. | off metformin | takes metformin

2024-01-10 | I'm a junior at Berkeley. | junior | ·
2024-09-10 | I'm a senior now. | senior | is a junior

2024-01-10 | 目前租住在朝阳区，房租五千二。 | 朝阳 | ·
2024-06-01 | 房东不续租了，我们上周搬到通州了。 | 通州 | 租住在朝阳

2024-01-10 | 我是一名小学语文老师。 | 语文老师 | ·
2024-09-01 | 我转行做插画师了。 | 插画师 | 语文老师

2024-01-10 | 我女儿上中班。 | 中班 | ·
2024-09-01 | 女儿升大班了。 | 大班 | 上中班

2024-01-10 | 我每天晚上跑五公里。 | 五公里 | ·
2024-06-01 | 膝盖伤了，跑步停了，改成游泳。 | 游泳 | 每天晚上跑五公里

2024-01-10 | 我们公司用钉钉沟通。 | 钉钉 | ·
2024-06-01 | 公司从钉钉换到飞书了。 | 飞书 | 公司用钉钉

2024-01-10 | 我男朋友是程序员。 | 程序员 | ·
2024-06-01 | 我和男朋友分手了。 | 分手 | 男朋友是程序员

2024-01-10 | 我早上七点起床。 | 七点 | ·
2024-06-01 | 现在六点就起床了。 | 六点 | 七点起床

2024-01-10 | 我喜欢听周杰伦。 | 周杰伦 | ·
2024-06-01 | 现在不怎么听周杰伦了，更喜欢陈奕迅。 | 陈奕迅 | ·

2024-01-10 | 我的目标是今年跑一个半马。 | 半马 | ·
2024-06-01 | 目标改成全马了。 | 全马 | 目标是今年跑一个半马

2024-01-10 | 我妈住在老家。 | 老家 | ·
2024-06-01 | 我妈搬来跟我一起住了。 | 一起住 | 我妈住在老家

2024-01-10 | 我不喝咖啡。 | 不喝咖啡 | ·
2024-06-01 | 我最近开始喝咖啡了。 | 开始喝咖啡 | 林梅不喝咖啡

2024-01-10 | 我们每周三下午开周会。 | 周三 | ·
2024-06-01 | 周会改到周五上午了。 | 周五 | 每周三

2024-01-10 | 我今年28岁。 | 28 | ·
2025-01-20 | 我29岁了。 | 29 | 28岁

2024-01-10 | 我养了两只仓鼠。 | 仓鼠 | ·
2024-06-01 | 仓鼠送人了。 | 送人 | 养了两只仓鼠

2024-01-10 | We rent a flat in Camden. | Camden | ·
2024-06-01 | Our landlord sold up, so we moved to Hackney last week. | Hackney | rents a flat in Camden

2024-01-10 | I'm a primary school teacher. | teacher | ·
2024-09-01 | I've become an illustrator. | illustrator | school teacher

2024-01-10 | My daughter goes to Oakfield School. | Oakfield | ·
2024-09-01 | My daughter changed schools, she goes to St Mary's School now. | Mary | goes to Oakfield

2024-01-10 | My boyfriend is a programmer. | programmer | ·
2024-06-01 | My boyfriend and I broke up. | broke up | boyfriend is a programmer

2024-01-10 | I subscribe to Netflix. | Netflix | ·
2024-06-01 | I cancelled Netflix. | cancelled | subscribes to Netflix

2024-01-10 | I take amlodipine for my blood pressure. | amlodipine | ·
2024-06-01 | I came off amlodipine. | off | takes amlodipine

2024-01-10 | I get up at seven. | seven | ·
2024-06-01 | I get up at six these days. | six | at seven

2024-01-10 | I play the piano. | piano | ·
2024-06-01 | I don't play the piano anymore. | anymore | plays the piano

2024-01-10 | My email is lin@example.com. | lin@ | ·
2024-06-01 | My new email is mei@example.org. | mei@ | email is lin

2024-01-10 | My goal is to run a half marathon this year. | half | ·
2024-06-01 | My goal is a full marathon now. | full | half marathon

2024-01-10 | My mum lives in Leeds. | Leeds | ·
2024-06-01 | My mum has moved in with us. | moved in | lives in Leeds

2024-01-10 | I don't drink coffee. | coffee | ·
2024-06-01 | I've started drinking coffee. | started | drink coffee

2024-01-10 | Our weekly sync is on Wednesdays. | Wednesday | ·
2024-06-01 | Our weekly sync moved to Fridays. | Friday | Wednesdays

2024-01-10 | I'm 28 years old. | 28 | ·
2025-01-20 | I turned 29. | 29 | 28 years

2024-01-10 | My phone number is 555-0134. | 0134 | ·
2024-06-01 | I have a new phone number: 555-0199. | 0199 | 0134

2024-01-10 | We have two hamsters. | hamsters | ·
2024-06-01 | We gave the hamsters away. | away | has two hamsters

2024-01-10 | I go to yoga on Mondays. | yoga | ·
2024-06-01 | I quit yoga. | quit | on Mondays

2024-01-10 | My phone is a Fairphone 5. | Fairphone | ·
2024-06-01 | My phone is a Galaxy S24 now. | S24 | Fairphone
2024-11-01 | I switched to a Pixel 9. | Pixel 9 | S24

2024-01-10 | 我的手机是小米14。 | 小米14 | ·
2024-06-01 | 我的手机现在是华为Mate 60。 | Mate 60 | 小米14
2024-11-01 | 手机换成iPhone 16了。 | iPhone 16 | Mate 60

2024-01-10 | My editor is Vim. | Vim | ·
2024-06-01 | I switched to Helix. | Helix | editor is Vim

2024-01-10 | I rent a one-bed on Garnet Street in Manchester. | Manchester | ·
2024-06-01 | I moved to Stockport. | Stockport | Garnet Street

2024-01-10 | 我最喜欢的茶是茉莉花茶。 | 茉莉花茶 | ·
2024-06-01 | 我最喜欢的茶现在是乌龙茶。 | 乌龙茶 | 茉莉花茶

2024-01-10 | 我订阅了Netflix。 | Netflix | ·
2024-06-01 | Netflix退订了。 | 退订 | 订阅了Netflix

2024-01-10 | I live in Madrid. | Madrid | ·
2024-05-01 | I moved to Lisbon. I rent a tiny flat in Alfama. | Lisbon | Madrid

2024-01-10 | I rent a one-bed in Leeds. | Leeds | ·
2024-05-01 | Keys in hand – two-bed in Stockport with my friend Ada. | Stockport | Leeds

2024-01-10 | I am a firmware engineer with six years of experience, based out of Pune. | Pune | ·
2024-05-01 | We have settled in Dublin now. | Dublin | Pune

2024-01-10 | My dentist is Dr. Wu. | Wu | ·
2024-05-01 | My dentist is Dr. Lee now. | Lee | Wu

2024-01-10 | I live in St. Louis. | Louis | ·
2024-05-01 | I live in St. Petersburg now. | Petersburg | Louis

2024-01-10 | I tutor chemistry on Tuesdays. | chemistry | ·
2024-05-01 | No more tutoring, the lab pays me for demonstrating instead. | demonstrating | Tuesdays

2024-01-10 | My therapy is weekly. | weekly | ·
2024-05-01 | Therapy's down from weekly to once a month, Dr Imai says that's plenty. | once a month | is weekly

2024-01-10 | I keep everything in Obsidian. | Obsidian | ·
2024-05-01 | It's Apple Notes these days. | Apple Notes | Obsidian

2024-01-10 | I rented a piano. | piano | ·
2024-05-01 | Piano's gone back to the shop. | gone back | rented

2024-01-10 | 首选清华，保底武大。 | 武大 | ·
2024-05-01 | 保底从武大换成厦大。 | 厦大 | 保底武大

2024-01-10 | 托福考了103分。 | 103 | ·
2024-05-01 | 二刷托福109啦！ | 109 | 103

2024-01-10 | 我用多邻国，每天二十分钟。 | 多邻国 | ·
2024-05-01 | 多邻国欠了好多课……删了。 | 删 | 用多邻国

2024-01-10 | 我用iPhone 15。 | iPhone | ·
2024-05-01 | 手机换了，现在用华为。 | 华为 | iPhone

2024-01-10 | 我暂时住我姐家，在石景山。 | 石景山 | ·
2024-05-01 | 租了自己的房子，五棵松。 | 五棵松 | 石景山

2024-01-10 | 签了合肥的一家芯片公司，做验证工程师，18号入职。 | 芯片 | ·
2024-05-01 | 从芯片公司出来了，上个月去了上海一家做机器人的创业公司。 | 机器人 | 签了

2024-01-10 | 楼下捡了只三花！！取名汤圆 | 汤圆 | ·
2024-05-01 | 汤圆送人了。 | 送人 | 捡

2024-01-10 | 我们的数据库用MySQL。 | MySQL | ·
2024-05-01 | MySQL老出问题，组里投票改成TiDB了。 | TiDB | 数据库用MySQL

2024-01-10 | 我住在北京。 | 北京 | ·
2024-05-01 | 我也搬到上海了。 | 上海 | 住在北京

2024-01-10 | I work as a nurse. | nurse | ·
2024-05-01 | I retired last month. | retired | works as a nurse
"""
