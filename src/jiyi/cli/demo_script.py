"""Script of `jiyi demo`: conversations, questions and narration."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

CHINA = timezone(timedelta(hours=8))
MORNING = datetime(2025, 5, 12, 9, 0, tzinfo=CHINA)
NOW = datetime(2025, 6, 10, 9, 0, tzinfo=CHINA)  # fixed, so that scores do not fade from one showing to the next
BEFORE = datetime(2025, 5, 20, tzinfo=CHINA)

USER = "林梅"
ASSISTANT = "Assistant"

CONVERSATION = (
    (USER, "早上好！我叫林梅。我住在杭州。我在一家地图公司写后端。"),
    (ASSISTANT, "Good morning, Mei! What are you building these days?"),
    (USER, "A route planner: parser 用 Rust 写的, API in Python with FastAPI."),
    (ASSISTANT, "Rust 加 Python，好搭配。最近顺利吗？"),
    (USER, "Since we upgraded tile-server to v2.14.3, map tiles come back blank."),
    (ASSISTANT, "I would roll back to v2.13.9 until that is fixed."),
    (USER, "好主意。对了，周五请同事吃饭：我吃素，对花生过敏。"),
    (ASSISTANT, "记住了，我找一家安静的素食餐厅。"),
    (USER, "I only drink espresso before noon, otherwise I can't sleep."),
    (ASSISTANT, "明白，下午只给你推荐花茶。"),
    (USER, "我妹妹林岚在里斯本读博士，研究候鸟，她的猫叫豆包。"),
    (USER, "Remind me to renew my passport by September."),
    (USER, "Please answer in English."),
)
A_MONTH_LATER = (
    (USER, "我六月一号搬家了，现在住在柏林。"),
    (USER, "以后请用中文回答。"),
)
WHERE = "林梅住在哪里？"
HOME = "杭州"
FORGOTTEN = "豆包"

# The question, and what is hard about it.
QUESTIONS = (
    ("过敏", "two_characters"),
    ("她什么时候喝咖啡？", "zh_to_en"),
    ("What is the cat's name?", "en_to_zh"),
    ("v2.14.3", "identifier"),
    ("林岚", "name"),
    ("用 Rust 写的 parser", "mixed"),
)
WHY = "用 Rust 写的 parser"

ENGLISH = {
    "title": "Jiyi 记忆 · long-term memory for AI agents",
    "subtitle": "One file, offline, no key. A temporary store: yours is not touched.",
    "loading": "loading the built-in embedder …",
    "talk": "A conversation goes in, message by message",
    "memories": "Memories come out",
    "memories_note": "Worked out by rule, without a model; each points to the words that say it ({count} in one file):",
    "search": "Ask, in either language",
    "search_note": "Each line is one search over everything above, and its best hit:",
    "question": "question",
    "hit": "best hit",
    "two_characters": "a two-character word",
    "zh_to_en": "Chinese asks, English answers",
    "en_to_zh": "English asks, Chinese answers",
    "identifier": "a version number, exactly",
    "name": "a name",
    "mixed": "both languages in one query",
    "why": "Why this hit? Every score can be read",
    "change": "Memories change, and the past stays readable",
    "later": "A month later she says:",
    "ended": "Nothing was overwritten. The old home knows when it ended, and by what:",
    "ask": "Where does she live?",
    "today": "asked today",
    "before": "as of May 20",
    "forget": "Forgetting is real",
    "forget_note": "Mei asks to forget the cat. Deleted: {memories} memories, {messages} message, their history.",
    "gone": "searching for it again:",
    "nothing": "nothing matched among {searched} memories",
    "next": "Now yours",
    "next_note": "Three commands to try:",
    "next_add": "remember",
    "next_search": "find, and see why",
    "next_doctor": "see what works here",
}

CHINESE = {
    "title": "Jiyi 记忆 · AI 智能体的长期记忆",
    "subtitle": "一个文件，离线运行，无需密钥。演示使用临时存储，不会动你的数据。",
    "loading": "正在加载内置向量模型 …",
    "talk": "一段对话，逐条记下",
    "memories": "对话变成记忆",
    "memories_note": "按规则得出，不用模型；每条都指向说出它的原话（同一个文件里共 {count} 条）：",
    "search": "提问，中英文皆可",
    "search_note": "每一行都是对以上全部记忆的一次搜索，以及最佳结果：",
    "question": "问题",
    "hit": "最佳结果",
    "two_characters": "两个字的词",
    "zh_to_en": "中文提问，英文作答",
    "en_to_zh": "英文提问，中文作答",
    "identifier": "版本号，一字不差",
    "name": "人名",
    "mixed": "中英混合",
    "why": "为什么是它？每个分数都看得懂",
    "change": "记忆会变，过去仍可查",
    "later": "一个月后她说：",
    "ended": "什么都没有被覆盖。旧住址知道自己何时结束、因何结束：",
    "ask": "她住在哪里？",
    "today": "今天问",
    "before": "回到 5 月 20 日问",
    "forget": "忘记，就是真的忘记",
    "forget_note": "林梅要求忘掉那只猫。已删除：{memories} 条记忆、{messages} 条消息及其历史。",
    "gone": "再搜一次：",
    "nothing": "{searched} 条记忆中没有匹配",
    "next": "轮到你了",
    "next_note": "试试这三条命令：",
    "next_add": "记住",
    "next_search": "找到，并看懂原因",
    "next_doctor": "看看这里一切是否正常",
}

NARRATIONS = {"en": ENGLISH, "zh": CHINESE}
