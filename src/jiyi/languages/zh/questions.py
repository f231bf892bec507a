"""Cues in Chinese questions: the kind of answer they ask for."""

from __future__ import annotations

import re

CUES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "who": r"谁",
        "when": r"什么时候|几[号月点]|哪[天年月]|何时|星期几|周几",
        "where": r"哪里|哪儿|在哪|哪个城市",
        "how_many": r"多少|几[个岁次]|多大|多久|多长|多高",
        "why": r"为什么|怎么会",
        "how": r"怎么|如何",
        "yes_no": r"吗|是不是|有没有",
        "past": r"以前|之前|原来|上次|去年|曾经|当初",
        "assistant_said": r"你.{0,6}(?:说|推荐|建议|给|教|告诉)",
        "present": r"现在|目前|如今|还在|最近|最新",
        "preference": r"喜欢|爱|讨厌|偏好",
        "task": r"帮我|写|订|做|推荐|安排|准备|买|选",
    }.items()
}
