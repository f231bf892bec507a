"""Vocabulary of the generated texts: word lists, and names built from syllables."""

# ruff: noqa: SIM905 — a list of words reads best as text
from __future__ import annotations

from itertools import product

EN_PEOPLE = """Alice Boris Carmen Dmitri Elena Farid Grace Hana Ivan Julia Kofi Lena Marco Nadia Oscar Priya
Quentin Rosa Samir Tessa Umar Vera Wendy Xenia Yusuf Zoe Anders Bianca Cedric Dalia Emil Fiona Gustav Helene
Imran Jonas Katya Liam Mira Noah Olga Pablo Renata Simon Tomas Ursula Viktor Walter""".split()
EN_PLACES = """Berlin Lisbon Oslo Nairobi Toronto Osaka Lima Dublin Prague Athens Seattle Denver Boston Vienna
Zurich Madrid Helsinki Warsaw Chicago Sydney Mumbai Jakarta Cairo Geneva Austin Porto Krakow Bergen Leeds
Kyoto""".split()
EN_THINGS = """coffee tea laptop bicycle garden parser database invoice contract budget kitchen camera guitar
novel ticket report server keyboard passport meeting lecture recipe mortgage insurance vaccine allergy headache
marathon piano sculpture museum concert festival airport train ferry hotel apartment landlord neighbour
colleague manager client intern compiler scheduler gateway dashboard pipeline cluster backup firewall
certificate migration benchmark deadline roadmap proposal workshop course exam thesis library notebook printer
monitor headphones charger battery bridge harbour forest mountain lake beach campsite tent backpack boots
umbrella jacket scarf sweater necklace present birthday wedding funeral anniversary holiday breakfast lunch
dinner salad soup noodles bread cheese chocolate peanuts shrimp yoghurt honey pepper basil tomato mushroom
pumpkin cat dog rabbit parrot aquarium tractor orchard vineyard bakery pharmacy dentist surgeon therapist gym
yoga climbing swimming chess football tennis podcast newsletter magazine documentary orchestra violin drums
telescope microscope drone robot sensor thermostat heater boiler window balcony staircase garage basement attic
carpet curtain sofa mattress lamp candle mirror shelf drawer wardrobe fridge oven dishwasher kettle toaster
blender vacuum broom salary pension tax receipt refund warranty subscription password account wallet loan
deposit auction warehouse factory supplier customs parcel courier address invoice""".split()
EN_DOING = """prefers avoids bought sold repaired ordered cancelled postponed finished started planned reviewed
tested deployed rewrote translated recommended borrowed returned photographed measured painted cooked baked
collected studied taught learned missed forgot remembered promised refused accepted discussed compared replaced
upgraded archived exported published printed signed renewed donated inherited""".split()
EN_KIND = """quiet cheap reliable broken secondhand organic vegetarian spicy bitter sweet wooden ceramic
wireless portable heavy fragile modern ancient local foreign urgent weekly monthly annual private shared
internal external legal medical financial seasonal temporary permanent spare favourite""".split()

ZH_PEOPLE = [
    a + b
    for a, b in product(
        "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗", ("小明", "丽华", "建国", "思远", "雨桐", "浩然", "欣怡", "志强")
    )
]
ZH_PLACES = """北京 上海 杭州 成都 广州 深圳 南京 武汉 西安 苏州 厦门 青岛 大连 昆明 重庆 天津 长沙 哈尔滨 拉萨
三亚 柏林 东京 巴黎 伦敦 纽约""".split()
ZH_THINGS = """咖啡 绿茶 电脑 自行车 花园 解析器 数据库 发票 合同 预算 厨房 相机 吉他 小说 车票 报告 服务器 键盘
护照 会议 讲座 菜谱 房贷 保险 疫苗 过敏 头痛 马拉松 钢琴 雕塑 博物馆 音乐会 电影节 机场 火车 轮渡 酒店 公寓 房东
邻居 同事 经理 客户 实习生 编译器 调度器 网关 仪表盘 流水线 集群 备份 防火墙 证书 迁移 基准测试 截止日期 路线图
提案 研讨会 课程 考试 论文 图书馆 笔记本 打印机 显示器 耳机 充电器 电池 大桥 港口 森林 雪山 湖泊 海滩 露营地
帐篷 背包 靴子 雨伞 外套 围巾 毛衣 项链 礼物 生日 婚礼 纪念日 假期 早餐 午饭 晚餐 沙拉 鸡汤 面条 面包 奶酪
巧克力 花生 虾仁 酸奶 蜂蜜 辣椒 香菜 番茄 蘑菇 南瓜 猫咪 小狗 兔子 鹦鹉 鱼缸 果园 葡萄酒 面包店 药店 牙医 医生
健身房 瑜伽 攀岩 游泳 象棋 足球 网球 播客 杂志 纪录片 乐团 小提琴 望远镜 显微镜 无人机 机器人 传感器 空调 暖气
窗户 阳台 楼梯 车库 地下室 地毯 窗帘 沙发 床垫 台灯 镜子 书架 抽屉 衣柜 冰箱 烤箱 洗碗机 水壶 工资 养老金 税单
收据 退款 保修 订阅 密码 账户 钱包 贷款 押金 仓库 工厂 供应商 海关 包裹 快递 地址 火锅 豆腐 饺子 米饭 海鲜 素食
太极拳 书法 国画 京剧 剪纸 风筝 灯笼 春节 中秋节 高铁 地铁 公交 单车 驾照 签证 户口 学区 幼儿园 小学 大学 奖学金
导师 实验室 专利 股票 基金 创业 招聘 简历 面试 加班 出差 年终奖 团建 需求 接口 缓存 日志 监控 告警 容器 镜像
分支 代码 评审 测试 上线 回滚 故障""".split()
ZH_DOING = """喜欢 讨厌 买了 卖掉了 修好了 预订了 取消了 推迟了 完成了 开始准备 计划更换 检查了 测试了 部署了
重写了 翻译了 推荐了 借走了 归还了 拍摄了 测量了 收藏了 研究了 学会了 错过了 忘记了 记住了 答应了 拒绝了 讨论了
比较了 升级了 导出了 发布了 打印了 签署了 续订了 捐赠了""".split()
ZH_KIND = """安静的 便宜的 可靠的 坏掉的 二手的 有机的 清淡的 麻辣的 木制的 陶瓷的 无线的 便携的 易碎的 现代的
古老的 本地的 进口的 紧急的 每周的 每月的 年度的 私人的 共享的 内部的 法律的 医疗的 财务的 临时的 长期的 备用的
最爱的""".split()

EN_BRANDS = [
    a + b + c
    for a, b, c in product(
        "Vel Kin Tor Mar Zan Bel Lor Dex Fen Gal Hul Jas Pel Ryn Sol".split(),
        "o a i e u".split(),
        "ra tar vex lin dor mus nix phel quist rand skin thal".split(),
    )
]
ZH_BRANDS = [
    a + b + c
    for a, b, c in product(
        "星 云 海 山 光 风 木 石 金 蓝".split(), "图 达 联 芯 创 锐 悦".split(), "科技 网络 电子 食品 出行".split()
    )
]
ID_PARTS = """user order cache session token index batch queue retry audit quota shard stream vector parse merge
render upload export notify""".split()
TAGS = ["work", "家庭", "travel", "健康", "food", "学习", "money", "爱好", "code", "宠物", "music", "搬家"]
TYPES = ["fact", "preference", "event", "task", "skill", "profile"]
