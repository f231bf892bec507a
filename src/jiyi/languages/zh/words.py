"""Chinese word lists."""

from __future__ import annotations

from itertools import product

from ..base import word_set

# Single characters that only colour a sentence. The list is short on purpose: 地, 得 or 过 can be content.
PARTICLES = frozenset("的了着吗呢吧啊呀嘛啦哦喔噢呗么什们哇嗯哎唉诶咯嘞")

_QUESTIONS = word_set("什么 怎么 怎样 哪里 哪儿 哪个 哪些 为什么 什么样 怎么样 多少 如何 为何 何时 几时")

STOP_WORDS = _QUESTIONS | word_set("""
    谁 哪 几 何 啥 咋 是否 是不是 有没有 能不能 可不可以 什么时候
    我 你 您 他 她 它 咱 我们 你们 您们 他们 她们 它们 咱们 自己 大家 别人 人家 某 某个 某些
    这 那 这个 那个 这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 这是 那是 此 该 各 每 每个
    是 在 有 和 与 及 或 或者 以及 并 并且 而 而且 但 但是 不过 可是 然而 所以 因此 因为 由于 如果 假如 虽然 尽管
    即使 只要 只有 除了 无论 不管 既然 于是 然后 接着 还是 还有 就是 也是 都是 不是 而是 只是 可以 可能 应该 能够
    一定 已经 曾经 正在 刚刚 刚才 现在 一直 一些 一下 一点 一个 一样 一起 有些 有点 有的 没有 不会 不能 非常 十分
    特别 比较 真的 其实 其中 关于 对于 根据 按照 通过 为了 从 把 被 让 给 对 向 往 到 跟 同 为 以 于 之 其 所 将
    就 才 又 再 也 都 很 太 更 最 还 只 不 没 会 能 要 想 去 来 说 做 用 上 下 里 中 个 些 点 次 人 事 时 时候
    年 月 日 天 等 等等 之前 之后 以前 以后 的话 请 请问 告诉 比如 例如 好像 似乎 大概 左右
""")

# Pairs of characters that are no search terms: question words, pronouns, and any two particles.
STOP_PAIRS = (
    frozenset(word for word in STOP_WORDS if len(word) == 2)
    | frozenset(word[i : i + 2] for word in _QUESTIONS for i in range(len(word) - 1))
    | frozenset(map("".join, product(PARTICLES, repeat=2)))
)

# Words that nearly every memory has: true keywords, but they set nothing apart.
COMMON_KEYWORDS = word_set("用户 助手 喜欢 觉得 知道 想要 需要 希望 认为 今天 昨天 明天 东西 问题")
UNITS = (
    "公斤|公里|千克|毫升|厘米|分钟|小时|平方米|平米|块钱|美元|欧元|日元|[万亿]元"
    "|[元块岁年月日号点分秒天周次个人斤克米度万亿楼层页%]"
)
