"""How people say things in Chinese: the sentence, the type, the attribute and value, and what is told."""

# 句子 | 类型 | 属性 | 值 | 内容。空的不比较；“ended”表示不再成立。
STATED = """
我对花生过敏 | fact | allergy | 花生 | 用户对花生过敏
我有严重的海鲜过敏 | fact | allergy | 海鲜 | 用户有严重的海鲜过敏
我一喝牛奶就过敏 | fact | allergy | 牛奶 | 用户一喝牛奶就过敏
我吃素 | fact | diet | vegetarian | 用户吃素
我是素食主义者 | fact | diet | | 用户是素食主义者
我不吃香菜 | preference | diet:香菜 | avoids | 用户不吃香菜
我不再吃肉了 | preference | diet:肉 | eats ended | 用户不再吃肉了
我有高血压 | fact | | | 用户有高血压
我去年查出了糖尿病 | fact | | | 用户去年（2022年）查出了糖尿病
我乳糖不耐受 | fact | health | | 用户乳糖不耐受
我恐高 | fact | health | | 用户恐高
我怕狗 | fact | fear:狗 | 狗 | 用户怕狗
我在吃降压药 | fact | medication | 降压药 | 用户在吃降压药
我戒烟了 | fact | smoking | does not smoke | 用户戒烟了
我住在杭州 | fact | home | 杭州 | 用户住在杭州
我上个月搬到了深圳 | fact | home | 深圳 | 用户上个月（2023年4月）搬到了深圳
刚搬到北京 | fact | home | 北京 | 用户刚搬到北京
我从南京搬到了苏州 | fact | home | 苏州 | 用户从南京搬到了苏州
我以前住在成都 | fact | home | 成都 ended | 用户以前住在成都
我不住在上海了 | fact | home | 上海 ended | 用户不住在上海了
我在东北长大 | fact | hometown | 东北 | 用户在东北长大
我是四川人 | fact | hometown | 四川人 | 用户是四川人
我老家在湖南 | fact | hometown | 湖南 | 用户老家在湖南
我叫李雷 | fact | name | 李雷 | 用户叫李雷
我今年34岁 | fact | age | 34岁 | 用户今年34岁
我生日是3月14日 | fact | birthday | 3月14日 | 用户生日是3月14日
我血型是A型 | fact | blood type | A型 | 用户血型是A型
我是双鱼座 | fact | | | 用户是双鱼座
我在腾讯上班 | fact | employer | 腾讯 | 用户在腾讯上班
我是一名小学老师 | fact | job | 小学老师 | 用户是一名小学老师
我在医院当护士 | fact | employer | 医院 | 用户在医院当护士
我做产品经理的工作 | fact | job | | 用户做产品经理的工作
我有个女儿 | fact | family | | 用户有个女儿
我1990年出生 | fact | birthday | 1990年 | 用户1990年出生
我刚入职特斯拉 | fact | employer | 特斯拉 | 用户刚入职特斯拉
我一个人住 | fact | household | | 用户一个人住
我上夜班 | fact | work mode | 夜班 | 用户上夜班
我戴眼镜 | fact | wears | 眼镜 | 用户戴眼镜
我色弱 | fact | health | | 用户色弱
我打胰岛素 | fact | medication | 胰岛素 | 用户打胰岛素
我五点半起床 | pattern | wake | 五点半 | 用户五点半起床
我会三门语言 | fact | language | 三门语言 | 用户会三门语言
我欠老王五百块 | fact | | | 用户欠老王五百块
我刚买了房 | fact | owns:房 | 房 | 用户刚买了房
我在动物收容所做志愿者 | fact | volunteering | 动物收容所 | 用户在动物收容所做志愿者
我妈妈今年六十了 | fact | age | 六十 | 用户妈妈今年六十了
我儿子的生日是6月5号 | fact | birthday | 6月5号 | 用户儿子的生日是6月5号
我们九月要生宝宝了 | task | plan | 生宝宝 |
下周五14:30体检 | event | plan | 体检 | 用户下周五14:30（2023年5月26日）体检
我上周辞职了 | fact | employer | | 用户上周（2023年5月8日）辞职了
我跳槽到字节了 | fact | employer | 字节 | 用户跳槽到字节了
我退休了 | fact | job | | 用户退休了
我从银行离职了 | fact | employer | 银行 ended | 用户从银行离职了
我在复旦读研究生 | fact | education | 复旦 | 用户在复旦读研究生
我毕业于浙江大学 | fact | education | 浙江大学 | 用户毕业于浙江大学
我有两个孩子 | fact | family | 两个孩子 | 用户有两个孩子
我结婚了 | fact | relationship | | 用户结婚了
我离婚了 | fact | relationship | | 用户离婚了
我养了一只橘猫 | fact | pet | 橘猫 | 用户养了一只橘猫
我女儿今年上小学 | fact | education | | 用户女儿今年上小学
我老婆是医生 | fact | job | 医生 | 用户老婆是医生
我妹妹住在杭州 | fact | home | 杭州 | 用户妹妹住在杭州
我男朋友叫王强 | fact | name | 王强 | 用户男朋友叫王强
我会弹钢琴 | fact | skill:弹钢琴 | 弹钢琴 | 用户会弹钢琴
我会说粤语 | fact | language | 粤语 | 用户会说粤语
我母语是闽南语 | fact | language | 闽南语 | 用户母语是闽南语
最近在学吉他 | fact | learning:吉他 | 吉他 | 用户最近在学吉他
我开的是一辆比亚迪 | fact | car | | 用户开的是一辆比亚迪
我有一套老房子 | fact | | | 用户有一套老房子
我的邮箱是ana@example.org | fact | email | | 用户的邮箱是ana@example.org
我预算最多三千块 | fact | budget | | 用户预算最多三千块
我改用Helix了 | fact | uses:editor | Helix | 用户改用Helix了
我从Vim换成了Helix | fact | uses:editor | Helix | 用户从Vim换成了Helix
我不再用微信了 | fact | uses:chat | 微信 ended | 用户不再用微信了
我们用的是PostgreSQL | fact | uses:database | PostgreSQL | 用户等人用的是PostgreSQL
我喜欢爬山 | preference | likes:爬山 | likes | 用户喜欢爬山
我特别爱吃火锅 | preference | | likes | 用户特别爱吃火锅
我不喜欢下雨天 | preference | likes:下雨天 | dislikes | 用户不喜欢下雨天
我讨厌开会 | preference | likes:开会 | dislikes | 用户讨厌开会
我受不了太甜的东西 | preference | | dislikes | 用户受不了太甜的东西
我对摄影很感兴趣 | preference | likes:摄影 | likes | 用户对摄影很感兴趣
比起咖啡我更喜欢茶 | preference | prefers | 茶 | 比起咖啡用户更喜欢茶
我更喜欢坐高铁 | preference | prefers | 坐高铁 | 用户更喜欢坐高铁
我最喜欢的颜色是蓝色 | preference | favourite:colour | 蓝色 | 用户最喜欢的颜色是蓝色
我是个足球迷 | preference | | likes | 用户是个足球迷
以后请用中文回答 | preference | instruction:language | | 用户希望助手以后用中文回答
别再用表情符号了 | preference | instruction | | 用户希望助手别再用表情符号了
叫我小美就行 | | | |
我打算明年去日本 | task | plan | 去日本 | 用户打算明年（2024年）去日本
我想学潜水 | task | plan | 学潜水 | 用户想学潜水
我明天要交报告 | task | plan | | 用户明天（2023年5月16日）要交报告
我得在周五之前订票 | task | plan | |
下个月要考驾照 | task | plan | | 用户下个月（2023年6月）要考驾照
我准备考研 | task | plan | | 用户准备考研
提醒我明天给妈妈打电话 | task | reminder | | 用户希望助手提醒用户明天（2023年5月16日）给妈妈打电话
我的目标是今年跑一次马拉松 | task | goal | | 用户的目标是今年跑一次马拉松
周五我有个面试 | | | | 周五（2023年5月19日）用户有个面试
明天下午三点我要和客户开会 | task | plan | | 明天下午三点（2023年5月16日）用户要和客户开会
我们决定用PostgreSQL | fact | decision | | 用户等人决定用PostgreSQL
我决定把车卖了 | fact | decision | | 用户决定把车卖了
最后选了蓝色的那个 | fact | decision | | 用户最后选了蓝色的那个
我每周三晚上去游泳 | pattern | | 周三 | 用户每周三晚上去游泳
我一周健身三次 | pattern | | | 用户一周健身三次
我每天早上喝一杯咖啡 | pattern | | 每天 | 用户每天早上喝一杯咖啡
我一般十一点睡觉 | pattern | | 十一点 | 用户一般十一点睡觉
我周末经常去爬山 | pattern | | | 用户周末经常去爬山
我昨天去了故宫 | event | | | 用户昨天（2023年5月14日）去了故宫
上周我和老婆去了巴黎 | event | | | 上周（2023年5月8日）用户和老婆去了巴黎
去年夏天，我去了云南旅游 | event | | | 去年夏天（2022年6月），用户去了云南旅游
我女儿昨天开始上小学了 | event | | | 用户女儿昨天（2023年5月14日）开始上小学了
我周六参加了同学的婚礼 | event | | | 用户周六（2023年5月13日）参加了同学的婚礼
教训是：迁移之前一定要先备份 | skill | lesson | |
先打tag，然后构建镜像，最后发布 | skill | how-to | |
我吃素，晚饭吃什么好？ | fact | diet | vegetarian | 用户吃素
对了，我对猫毛过敏 | fact | allergy | 猫毛 | 用户对猫毛过敏
医生说我血压高 | fact | | |
咖啡我不喝了 | | | | 咖啡用户不喝了
膝盖里有块钢板，是十年前车祸留下的 | fact | | | 膝盖里有块钢板，是十年前（2013年）车祸留下的
我房子是租的，月租四千五，押一付三 | fact | | | 用户房子是租的，月租四千五，押一付三
狗狗上周打了疫苗 | event | | | 狗狗上周（2023年5月8日）打了疫苗
预产期十一月十八 | event | | | 预产期十一月十八（2023年）
月底前得交报告 | task | plan | | 用户月底（2023年5月31日）前得交报告
我在成都出差，住朋友家 | fact | stay | |
我们每周一三五训练 | pattern | | |
我们跟苏州团队的例会定在每周二上午十点 | pattern | schedule:苏州例会 | 周二 |
苏州那个例会从周二改到周四了 | pattern | schedule:苏州例会 | 周四 | 苏州那个例会从周二改到周四了
我养了一只猫，叫豆腐 | fact | name | 豆腐 | 用户的猫叫豆腐
我住在酒店 | fact | stay | 酒店 | 用户住在酒店
我开了网易云音乐会员 | fact | uses:music | 网易云音乐 |
我現在改用QQ音樂了 | fact | uses:music | | 用户現在改用QQ音樂了
4月8号去云帆科技当产品经理 | fact | employer | 云帆科技当产品经理 |
房租每月六千，15号交 | fact | | |
"""

# 这些都不该记。
NOT_MEMORIES = """
你好！
谢谢你，很有帮助。
今天天气怎么样？
秘鲁的首都是哪里？
帮我写个排序函数
如果我有钱，我就买船
要是我搬到罗马，我就学意大利语。
我辞职了会怎么样？
我可能会搬到加拿大吧
我老板说公司要完了
听说小王辞职了
据说这家店要关门
翻译一下：我住在巴黎
他说：“我爱我的工作。”
我是飞行员。开玩笑的！
小说里我是一个住在塔里的巫师。
我喜欢咖啡吗？
我该不该搬到柏林？
好的
哈哈哈
早上好！
没问题
我明白你的意思了
我觉得你说得对
我想知道这个怎么用
我想问一下
让我想想
太好了！
不好意思
天气不错
今天天气很好，去公园散步了
想象一下我住在火星上
要不要买房子呢
嗯嗯
你说得对
收到
辛苦了
这个怎么弄
随便吧
再说吧
我跑了一下脚本，报错了
周末回不回奶奶家
药吃完没
给我写首关于灰尘的小诗
把上面的改成英文
老李非说那家店吃出过苍蝇
“拍得不够好，是因为离得不够近。”
会议纪要
累成狗
我想静静
我需要一个例子
明天继续
长城有两万多公里长
我最近在想你刚才的回答
写一段自我介绍，就说我叫李雷，今年二十岁
生活就像一盒巧克力
"""
