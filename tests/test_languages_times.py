"""Chinese and English words for a time mean the days a person would say they mean."""

import doctest
import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from importlib import import_module
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from jiyi.languages.calendar import Calendar
from jiyi.languages.dates import TimeSpan, _folded, _scanners, dates, find, resolved
from jiyi.languages.registry import LANGUAGES
from jiyi.languages.zh.dates import chinese_number
from support import cpu_unit, each_case

# A Wednesday.
NOW = datetime(2023, 6, 14, 10, tzinfo=timezone(timedelta(hours=8)))
NEW_YORK = ZoneInfo("America/New_York")

# What is asked, what it means: its first moment and the first one after it.
ENGLISH = [
    # Dates.
    ("on 2023-05-07 we met", "2023-05-07", "2023-05-08"),
    ("2023/5/7", "2023-05-07", "2023-05-08"),
    ("(2023-05-07)", "2023-05-07", "2023-05-08"),
    ("2023.05.07", "2023-05-07", "2023-05-08"),
    ("May 7, 2023", "2023-05-07", "2023-05-08"),
    ("7 May 2023", "2023-05-07", "2023-05-08"),
    ("What happened on 8 May, 2023?", "2023-05-08", "2023-05-09"),
    ("Friday, May 5, 2023", "2023-05-05", "2023-05-06"),
    ("May 7th", "2023-05-07", "2023-05-08"),
    ("the 7th of May", "2023-05-07", "2023-05-08"),
    ("the 7th of July", "2022-07-07", "2022-07-08"),
    ("Jan. 5, 2021", "2021-01-05", "2021-01-06"),
    ("Sept. 7", "2022-09-07", "2022-09-08"),
    ("on may 7", "2023-05-07", "2023-05-08"),
    ("February 29", "2020-02-29", "2020-03-01"),
    ("5/7/2023", "2023-05-07", "2023-05-08"),
    ("25/12/2022", "2022-12-25", "2022-12-26"),
    ("May 7th last year", "2022-05-07", "2022-05-08"),
    ("on the 7th?", "2023-06-07", "2023-06-08"),
    # Months, quarters, seasons, years.
    ("in May", "2023-05-01", "2023-06-01"),
    ("what did i do in may", "2023-05-01", "2023-06-01"),
    ("What did I do last May?", "2023-05-01", "2023-06-01"),
    ("last June", "2022-06-01", "2022-07-01"),
    ("this June", "2023-06-01", "2023-07-01"),
    ("next May", "2024-05-01", "2024-06-01"),
    ("in July", "2022-07-01", "2022-08-01"),
    ("May 2023", "2023-05-01", "2023-06-01"),
    ("May of 2022", "2022-05-01", "2022-06-01"),
    ("in May last year", "2022-05-01", "2022-06-01"),
    ("last year in May", "2022-05-01", "2022-06-01"),
    ("in February 2024", "2024-02-01", "2024-03-01"),
    ("early May 2022", "2022-05-01", "2022-05-11"),
    ("mid-May", "2023-05-11", "2023-05-21"),
    ("the end of May", "2023-05-21", "2023-06-01"),
    ("the first week of May", "2023-05-01", "2023-05-08"),
    ("the second Sunday of May 2023", "2023-05-14", "2023-05-15"),
    ("in 2023", "2023-01-01", "2024-01-01"),
    ("Where was I, 2022?", "2022-01-01", "2023-01-01"),
    ("the best films of 2021", "2021-01-01", "2022-01-01"),
    ("late 2022", "2022-09-01", "2023-01-01"),
    ("the end of 2022", "2022-10-01", "2023-01-01"),
    ("the summer of 2022", "2022-06-01", "2022-09-01"),
    ("winter 2022", "2022-12-01", "2023-03-01"),
    ("last summer", "2022-06-01", "2022-09-01"),
    ("last winter", "2022-12-01", "2023-03-01"),
    ("this summer", "2023-06-01", "2023-09-01"),
    ("next spring", "2024-03-01", "2024-06-01"),
    ("Q3 2022", "2022-07-01", "2022-10-01"),
    ("the third quarter of 2022", "2022-07-01", "2022-10-01"),
    ("last quarter", "2023-01-01", "2023-04-01"),
    ("the first half of 2022", "2022-01-01", "2022-07-01"),
    ("in the 1990s", "1990-01-01", "2000-01-01"),
    ("last Christmas", "2022-12-25", "2022-12-26"),
    ("Christmas 2021", "2021-12-25", "2021-12-26"),
    # From today.
    ("today", "2023-06-14", "2023-06-15"),
    ("yesterday's meeting", "2023-06-13", "2023-06-14"),
    ("the day before yesterday", "2023-06-12", "2023-06-13"),
    ("tomorrow", "2023-06-15", "2023-06-16"),
    ("the day after tomorrow", "2023-06-16", "2023-06-17"),
    ("last week", "2023-06-05", "2023-06-12"),
    ("this week", "2023-06-12", "2023-06-19"),
    ("next week", "2023-06-19", "2023-06-26"),
    ("the week before last", "2023-05-29", "2023-06-05"),
    ("last weekend", "2023-06-10", "2023-06-12"),
    ("over the weekend", "2023-06-10", "2023-06-12"),
    ("this weekend", "2023-06-17", "2023-06-19"),
    ("last month", "2023-05-01", "2023-06-01"),
    ("next month", "2023-07-01", "2023-08-01"),
    ("last year", "2022-01-01", "2023-01-01"),
    ("next year", "2024-01-01", "2025-01-01"),
    ("last Friday", "2023-06-09", "2023-06-10"),
    ("last Wednesday", "2023-06-07", "2023-06-08"),
    ("last Monday", "2023-06-12", "2023-06-13"),
    ("this Friday", "2023-06-16", "2023-06-17"),
    ("next Friday", "2023-06-16", "2023-06-17"),
    ("next Monday", "2023-06-19", "2023-06-20"),
    ("what did I say on friday", "2023-06-09", "2023-06-10"),
    ("on Wednesday", "2023-06-07", "2023-06-08"),
    ("last Tues", "2023-06-13", "2023-06-14"),
    ("Monday last week", "2023-06-05", "2023-06-06"),
    ("2 days ago", "2023-06-12", "2023-06-13"),
    ("a couple of days ago", "2023-06-12", "2023-06-13"),
    ("a few days ago", "2023-06-08", "2023-06-13"),
    ("three weeks ago", "2023-05-22", "2023-05-29"),
    ("a month ago", "2023-05-01", "2023-06-01"),
    ("half a year ago", "2022-12-01", "2023-01-01"),
    ("a year and a half ago", "2021-12-01", "2022-01-01"),
    ("two years ago", "2021-01-01", "2022-01-01"),
    ("a year ago today", "2022-06-14", "2022-06-15"),
    ("half an hour ago", "2023-06-14 09:30", "2023-06-14 09:31"),
    ("It is due in three weeks", "2023-07-03", "2023-07-10"),
    ("two days from now", "2023-06-16", "2023-06-17"),
    # Parts of a day.
    ("this morning", "2023-06-14 05:00", "2023-06-14 12:00"),
    ("last night", "2023-06-13 18:00", "2023-06-14 04:00"),
    ("yesterday evening", "2023-06-13 17:00", "2023-06-14"),
    ("yesterday at 7pm", "2023-06-13 19:00", "2023-06-13 20:00"),
    ("at 1:56 pm on 8 May, 2023", "2023-05-08 13:56", "2023-05-08 13:57"),
    ("2023-05-07 19:30", "2023-05-07 19:30", "2023-05-07 19:31"),
    ("2023-05-07T19:30:00Z", "2023-05-08 03:30", "2023-05-08 03:31"),
    ("the morning of May 7", "2023-05-07 05:00", "2023-05-07 12:00"),
    ("yesterday at 3:30", "2023-06-13", "2023-06-14"),
    # Ranges.
    ("the last 3 days", "2023-06-11", "2023-06-14 10:00"),
    ("the past three months", "2023-03-14", "2023-06-14 10:00"),
    ("in the last week", "2023-06-07", "2023-06-14 10:00"),
    ("the past 24 hours", "2023-06-13 10:00", "2023-06-14 10:00"),
    ("the next 3 days", "2023-06-14 10:00", "2023-06-18"),
    ("earlier this year", "2023-01-01", "2023-06-14 10:00"),
    ("since May", "2023-05-01", "2023-06-14 10:00"),
    ("since 2020", "2020-01-01", "2023-06-14 10:00"),
    ("between May 3 and June 2", "2023-05-03", "2023-06-03"),
    ("between 2019 and 2021", "2019-01-01", "2022-01-01"),
    ("from May 3 to May 7, 2021", "2021-05-03", "2021-05-08"),
    ("May 3-7, 2023", "2023-05-03", "2023-05-08"),
    ("from November to February", "2022-11-01", "2023-03-01"),
    ("from May to August", "2023-05-01", "2023-09-01"),
    ("from Monday to Friday", "2023-06-12", "2023-06-17"),
    ("2023-05-07 to 2023-05-09", "2023-05-07", "2023-05-10"),
    ("before May 2023", "1900-01-01", "2023-05-01"),
    ("after 2020", "2021-01-01", "2023-06-14 10:00"),
    ("after next Friday", "2023-06-17", "2101-01-01"),
    ("until last Friday", "1900-01-01", "2023-06-10"),
    ("the week before August 3, 2022", "2022-07-25", "2022-08-01"),
    ("the Friday before July 15, 2022", "2022-07-08", "2022-07-09"),
    ("two days after May 7, 2023", "2023-05-09", "2023-05-10"),
]
CHINESE = [
    # Dates.
    ("2023年5月7日", "2023-05-07", "2023-05-08"),
    ("2023 年 5 月 7 日", "2023-05-07", "2023-05-08"),
    ("２０２３年５月７日", "2023-05-07", "2023-05-08"),
    ("2023年5月7号星期天", "2023-05-07", "2023-05-08"),
    ("二〇二三年五月七日", "2023-05-07", "2023-05-08"),
    ("98年7月1日", "1998-07-01", "1998-07-02"),
    ("5月7号我在哪", "2023-05-07", "2023-05-08"),
    ("十二月二十五号", "2022-12-25", "2022-12-26"),
    ("2月29日", "2020-02-29", "2020-03-01"),
    ("去年的5月7号", "2022-05-07", "2022-05-08"),
    ("上个月15号", "2023-05-15", "2023-05-16"),
    ("这个月3号", "2023-06-03", "2023-06-04"),
    ("15号那天我说了什么", "2023-05-15", "2023-05-16"),
    ("时间是2024-04-16。", "2024-04-16", "2024-04-17"),
    # Months, quarters, seasons, years.
    ("5月", "2023-05-01", "2023-06-01"),
    ("我七月份做了什么", "2022-07-01", "2022-08-01"),
    ("2023年5月", "2023-05-01", "2023-06-01"),
    ("23年5月", "2023-05-01", "2023-06-01"),
    ("2024年2月", "2024-02-01", "2024-03-01"),
    ("去年5月", "2022-05-01", "2022-06-01"),
    ("明年3月", "2024-03-01", "2024-04-01"),
    ("5月上旬", "2023-05-01", "2023-05-11"),
    ("去年5月底", "2022-05-21", "2022-06-01"),
    ("5月第一周", "2023-05-01", "2023-05-08"),
    ("2023年5月第二个星期天", "2023-05-14", "2023-05-15"),
    ("2023年", "2023-01-01", "2024-01-01"),
    ("二零二二年", "2022-01-01", "2023-01-01"),
    ("2022年底", "2022-10-01", "2023-01-01"),
    ("今年年初", "2023-01-01", "2023-04-01"),
    ("年底", "2022-10-01", "2023-01-01"),
    ("今年上半年", "2023-01-01", "2023-07-01"),
    ("下半年", "2022-07-01", "2023-01-01"),
    ("2023年春天", "2023-03-01", "2023-06-01"),
    ("2022年冬天", "2022-12-01", "2023-03-01"),
    ("去年夏天", "2022-06-01", "2022-09-01"),
    ("2022年第三季度", "2022-07-01", "2022-10-01"),
    ("去年Q3", "2022-07-01", "2022-10-01"),
    ("上季度", "2023-01-01", "2023-04-01"),
    ("第一季度", "2023-01-01", "2023-04-01"),
    ("上世纪90年代", "1990-01-01", "2000-01-01"),
    ("圣诞节", "2022-12-25", "2022-12-26"),
    ("去年国庆", "2022-10-01", "2022-10-08"),
    # From today.
    ("今天", "2023-06-14", "2023-06-15"),
    ("昨天", "2023-06-13", "2023-06-14"),
    ("前天", "2023-06-12", "2023-06-13"),
    ("大前天", "2023-06-11", "2023-06-12"),
    ("明天", "2023-06-15", "2023-06-16"),
    ("后天", "2023-06-16", "2023-06-17"),
    ("後天", "2023-06-16", "2023-06-17"),
    ("上周", "2023-06-05", "2023-06-12"),
    ("上星期", "2023-06-05", "2023-06-12"),
    ("上个礼拜", "2023-06-05", "2023-06-12"),
    ("上上周", "2023-05-29", "2023-06-05"),
    ("这周", "2023-06-12", "2023-06-19"),
    ("下周天气怎么样", "2023-06-19", "2023-06-26"),
    ("上周一共花了多少", "2023-06-05", "2023-06-12"),
    ("上周五我说了什么", "2023-06-09", "2023-06-10"),
    ("上週五", "2023-06-09", "2023-06-10"),
    ("上周一", "2023-06-05", "2023-06-06"),
    ("这周三", "2023-06-14", "2023-06-15"),
    ("下星期天", "2023-06-25", "2023-06-26"),
    ("周五", "2023-06-09", "2023-06-10"),
    ("星期三", "2023-06-07", "2023-06-08"),
    ("问一下周五的事", "2023-06-09", "2023-06-10"),
    ("周末", "2023-06-10", "2023-06-12"),
    ("上周末", "2023-06-10", "2023-06-12"),
    ("这个周末", "2023-06-17", "2023-06-19"),
    ("上个月", "2023-05-01", "2023-06-01"),
    ("本月", "2023-06-01", "2023-07-01"),
    ("下个月", "2023-07-01", "2023-08-01"),
    ("去年", "2022-01-01", "2023-01-01"),
    ("前年", "2021-01-01", "2022-01-01"),
    ("今年", "2023-01-01", "2024-01-01"),
    ("明年", "2024-01-01", "2025-01-01"),
    ("两天前", "2023-06-12", "2023-06-13"),
    ("几天前", "2023-06-08", "2023-06-13"),
    ("半个月前", "2023-05-30", "2023-05-31"),
    ("三周前", "2023-05-22", "2023-05-29"),
    ("一个星期前", "2023-06-05", "2023-06-12"),
    ("3个月前", "2023-03-01", "2023-04-01"),
    ("兩個月前", "2023-04-01", "2023-05-01"),
    ("半年前", "2022-12-01", "2023-01-01"),
    ("一年前", "2022-01-01", "2023-01-01"),
    ("两年半以前", "2020-12-01", "2021-01-01"),
    ("半小时前", "2023-06-14 09:30", "2023-06-14 09:31"),
    ("十天后", "2023-06-24", "2023-06-25"),
    ("去年今天", "2022-06-14", "2022-06-15"),
    # Parts of a day.
    ("昨晚", "2023-06-13 18:00", "2023-06-14 04:00"),
    ("今早", "2023-06-14 05:00", "2023-06-14 12:00"),
    ("昨天上午", "2023-06-13 05:00", "2023-06-13 12:00"),
    ("昨天晚上七点", "2023-06-13 19:00", "2023-06-13 20:00"),
    ("昨晚八点半", "2023-06-13 20:30", "2023-06-13 20:31"),
    ("昨晚十一点", "2023-06-13 23:00", "2023-06-14"),
    ("昨天下午3点20分", "2023-06-13 15:20", "2023-06-13 15:21"),
    ("下周五上午九点", "2023-06-23 09:00", "2023-06-23 10:00"),
    ("5月20日（星期六）19:30", "2023-05-20 19:30", "2023-05-20 19:31"),
    ("昨天三点", "2023-06-13", "2023-06-14"),
    ("昨天一点也不累", "2023-06-13", "2023-06-14"),
    # Ranges.
    ("最近三天", "2023-06-11", "2023-06-14 10:00"),
    ("过去两个月", "2023-04-14", "2023-06-14 10:00"),
    ("近一周", "2023-06-07", "2023-06-14 10:00"),
    ("这两天", "2023-06-12", "2023-06-14 10:00"),
    ("前几天", "2023-06-08", "2023-06-14"),
    ("未来三天", "2023-06-14 10:00", "2023-06-18"),
    ("从5月以来", "2023-05-01", "2023-06-14 10:00"),
    ("2023年以来", "2023-01-01", "2023-06-14 10:00"),
    ("从去年到现在", "2022-01-01", "2023-06-14 10:00"),
    ("自2020年起", "2020-01-01", "2023-06-14 10:00"),
    ("今年早些时候", "2023-01-01", "2023-06-14 10:00"),
    ("5月3日到7日", "2023-05-03", "2023-05-08"),
    ("2022年5月3日至6月2日", "2022-05-03", "2022-06-03"),
    ("5月3日和6月2日之间", "2023-05-03", "2023-06-03"),
    ("去年3月到5月", "2022-03-01", "2022-06-01"),
    ("11月到2月", "2022-11-01", "2023-03-01"),
    ("2019-2021年", "2019-01-01", "2022-01-01"),
    ("周一到周五", "2023-06-12", "2023-06-17"),
    ("从上周五到昨天", "2023-06-09", "2023-06-14"),
    ("5月7日之前", "1900-01-01", "2023-05-07"),
    ("2020年以前", "1900-01-01", "2020-01-01"),
    ("上周五之后", "2023-06-10", "2023-06-14 10:00"),
    ("5月7日的前一天", "2023-05-06", "2023-05-07"),
]

# In a plan, as said on Wednesday 2023-06-14 at 10:00.
FUTURE = [
    ("moved to December 20", "2023-12-20", "2023-12-21"),
    ("moved to June 14", "2023-06-14", "2023-06-15"),
    ("moved to June 13", "2024-06-13", "2024-06-14"),
    ("due 12 March", "2024-03-12", "2024-03-13"),
    ("in May", "2024-05-01", "2024-06-01"),
    ("in June", "2023-06-01", "2023-07-01"),
    ("on Friday", "2023-06-16", "2023-06-17"),
    ("on Wednesday", "2023-06-21", "2023-06-22"),
    ("this Monday", "2023-06-19", "2023-06-20"),
    ("last Friday", "2023-06-09", "2023-06-10"),
    ("by Friday 5pm", "2023-06-16 17:00", "2023-06-16 18:00"),
    ("over the weekend", "2023-06-17", "2023-06-19"),
    ("before Friday", "2023-06-14 10:00", "2023-06-16"),
    ("by the 20th", "2023-06-20", "2023-06-21"),
    ("by the 13th", "2023-07-13", "2023-07-14"),
    ("by the end of the month", "2023-06-21", "2023-07-01"),
    ("by the end of the year", "2023-10-01", "2024-01-01"),
    ("pushed to 7/20", "2023-07-20", "2023-07-21"),
    ("from December 28 to January 3", "2023-12-28", "2024-01-04"),
    ("in May 2022", "2022-05-01", "2022-06-01"),
    ("tomorrow at 3pm", "2023-06-15 15:00", "2023-06-15 16:00"),
    ("on Christmas", "2023-12-25", "2023-12-26"),
    ("会议推迟到12月20日了", "2023-12-20", "2023-12-21"),
    ("改到6月13号", "2024-06-13", "2024-06-14"),
    ("改到7月20", "2023-07-20", "2023-07-21"),
    ("下周三下午三点", "2023-06-21 15:00", "2023-06-21 16:00"),
    ("周五下午3点", "2023-06-16 15:00", "2023-06-16 16:00"),
    ("周五之前", "2023-06-14 10:00", "2023-06-16"),
    ("20号交", "2023-06-20", "2023-06-21"),
    ("13号交", "2023-07-13", "2023-07-14"),
    ("月底", "2023-06-21", "2023-07-01"),
    ("年底", "2023-10-01", "2024-01-01"),
    ("5月", "2024-05-01", "2024-06-01"),
    ("周末", "2023-06-17", "2023-06-19"),
    ("上周五", "2023-06-09", "2023-06-10"),
    ("春节回家", "2024-02-10", "2024-02-11"),
    ("圣诞节", "2023-12-25", "2023-12-26"),
]

NO_TIMES = """
I may go | May I come in? | This may be wrong | may 7 people come? | the soldiers march on | they march in the streets
the sun is shining | I sat down | wait a second | I fall asleep | the fall of Rome | spring is here | summer camp
version v2.1 | it costs 3.5 dollars | upgrade to 1.2.3 | 192.168.10.20 | PyCharm 2023.1.2 | call 138-2023-0507
13820230507 | 2023 meters | in 2023 meters turn left | room 2022 | a total of 2000 | $2023 | 2,023 items
more than 2000? | id 20230507 | abc-2023-05-07-x | 2023-05-071 | https://x.com/2023/05/07/post | 24/7 | a score of 5/7
5 to 7 | at 7pm | 10:30 | 2023-02-30 | 2023-13-01 | 13/13/2022 | February 30, 2023 | May 32 | 1899-12-31 | 2101-01-01
every Friday | Fridays | Black Friday | friday.txt | What did April say? | June is my sister | Tom and May went home
the last day of school | the last time we met | the next day | last but not least | once a week | three days a week
I read it in two days | 2.5 years ago | in a minute | year after year | Q3 is an Audi | Sun Microsystems
Christmas tree
我有一点累 | 坐3号线去 | 住在1号楼 | 日常生活 | 月亮很圆 | 2023米 | 版本2.1 | 手机号13820230507 | 订单20230507
13月 | 2023年13月 | 2023年2月30日 | 2月30日 | 1899年 | 5个月 | 三天 | 两周 | 23年 | 三年级 | 三个月大
五月大的宝宝 | 每周五 | 每周一次 | 一周三次 | 每个星期五 | 每个周末 | 一月三次 | 晚上周杰伦唱歌 | 网上周边
本周期内 | 这周围的人 | 周年庆 | 以前天天去 | 以后天气 | 三天前端培训 | 后天性免疫 | 说明天气的原因
前年轻 | 今日头条 | 明日方舟 | 五月天的歌 | 农历五月 | 五月初五 | 春节 | 春天来了 | 最近 | 以前 | 刚才
早上好 | 第3天 | 7日游 | 3.5天前 | 十几天前 | 工作一天后
"""


def moment(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=NOW.tzinfo)


def found(text: str, now: datetime = NOW) -> list[str]:
    return [span.text for span in dates(text, now)]


@each_case(("text", "start", "end"), ENGLISH + CHINESE)
def test_what_words_mean(text: str, start: str, end: str) -> None:
    spans = dates(text, NOW)
    assert [(span.start, span.end) for span in spans] == [(moment(start), moment(end))]


@each_case(("text", "start", "end"), FUTURE)
def test_plans_lie_ahead(text: str, start: str, end: str) -> None:
    spans = dates(text, NOW, future=True)
    assert [(span.start, span.end) for span in spans] == [(moment(start), moment(end))]


@pytest.mark.parametrize("said", ["2025-12-15", "2026-03-10"])
def test_a_date_moved_to_december_is_the_next_december(said: str) -> None:
    at = moment(said)
    year = 2025 if at.month == 12 else 2026
    for text in ("The meeting moved to December 20", "会议推迟到12月20日了"):
        assert [span.start for span in dates(text, at, future=True)] == [moment(f"{year}-12-20")]


@each_case("text", [text.strip() for text in re.split(r"[|\n]", NO_TIMES.strip())])
def test_no_times(text: str) -> None:
    assert found(text) == []


@each_case(
    ("text", "times"),
    [
        ("I went to Rome in May 2022 and to Oslo last week.", ["May 2022", "last week"]),
        ("昨天和今天我都吃了面", ["昨天", "今天"]),
        ("last week我去了上海，昨天回来", ["last week", "昨天"]),
        ("I met her yesterday - today I am tired", ["yesterday", "today"]),
        ("in 2020 and 2021", ["2020", "2021"]),
        ("Was it on Friday or on Sunday?", ["Friday", "Sunday"]),
        ("from May 3 to May 7", ["from May 3 to May 7"]),
        ("自从2020年以来", ["自从2020年以来"]),
        ("去年前三个月", ["去年"]),
        ("Events take place in August.\n3. The next one", ["August"]),
    ],
)
def test_the_words_are_those_of_the_time(text: str, times: list[str]) -> None:
    assert found(text) == times


@each_case(
    ("text", "grain", "relative"),
    [
        ("2023-05-07", "day", False),
        ("May 7, 2023", "day", False),
        ("May 7", "day", True),
        ("5月7日", "day", True),
        ("2023年5月", "month", False),
        ("last month", "month", True),
        ("2023年春天", "season", False),
        ("this summer", "season", True),
        ("Q3 2023", "quarter", False),
        ("去年", "year", True),
        ("三周前", "week", True),
        ("昨天晚上七点", "hour", True),
        ("2023-05-07 19:30", "minute", False),
        ("from May 3 to May 7, 2021", "range", False),
        ("since 2020", "range", True),
        ("before 2020", "range", False),
        ("last weekend", "range", True),
    ],
)
def test_grain_and_relative(text: str, grain: str, relative: bool) -> None:
    [span] = dates(text, NOW)
    assert (span.grain, span.relative) == (grain, relative)


@each_case(
    ("now", "text", "start", "end"),
    [
        ("2023-03-31", "last month", "2023-02-01", "2023-03-01"),
        ("2023-03-31", "the past month", "2023-02-28", "2023-03-31"),
        ("2024-03-31", "最近一个月", "2024-02-29", "2024-03-31"),
        ("2024-02-29", "a year ago today", "2023-02-28", "2023-03-01"),
        ("2023-01-01", "昨天", "2022-12-31", "2023-01-01"),
        ("2023-01-01", "上个月", "2022-12-01", "2023-01-01"),
        ("2023-01-01", "last week", "2022-12-19", "2022-12-26"),
        ("2023-01-15", "this winter", "2022-12-01", "2023-03-01"),
        ("2023-05-20", "last May", "2022-05-01", "2022-06-01"),
        ("2023-05-20", "in May", "2023-05-01", "2023-06-01"),
        ("2023-06-18", "last weekend", "2023-06-10", "2023-06-12"),
        ("2023-06-18", "上周日", "2023-06-11", "2023-06-12"),
        ("2023-03-30", "31号那天", "2023-01-31", "2023-02-01"),
    ],
)
def test_at_the_ends_of_months_and_years(now: str, text: str, start: str, end: str) -> None:
    [span] = dates(text, moment(now))
    assert (span.start, span.end) == (moment(start), moment(end))


@each_case(
    ("zone", "text", "start", "end"),
    [
        # A day of 23 hours, one of 25, and one that begins at one o'clock.
        ("America/New_York", "2023-03-12", "2023-03-12T05:00", "2023-03-13T04:00"),
        ("America/New_York", "2023-11-05", "2023-11-05T04:00", "2023-11-06T05:00"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00", "2018-11-05T02:00"),
        # An hour that did not exist is the next, one that came twice is both.
        ("America/New_York", "2023-03-12 02:30", "2023-03-12T07:30", "2023-03-12T07:31"),
        ("America/New_York", "March 12, 2023 at 2 am", "2023-03-12T07:00", "2023-03-12T08:00"),
        ("America/New_York", "November 5, 2023 at 1 am", "2023-11-05T05:00", "2023-11-05T07:00"),
        # Samoa went without this day.
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", "2011-12-31T10:00"),
    ],
)
def test_days_are_those_of_the_calendar_there(zone: str, text: str, start: str, end: str) -> None:
    [span] = dates(text, datetime(2023, 6, 14, tzinfo=ZoneInfo(zone)))
    expected = [datetime.fromisoformat(end_).replace(tzinfo=UTC) for end_ in (start, end)]
    assert [span.start.astimezone(UTC), span.end.astimezone(UTC)] == expected


def test_yesterday_when_summer_time_began() -> None:
    [span] = dates("yesterday", datetime(2023, 3, 13, 0, 30, tzinfo=NEW_YORK))
    assert span.start == datetime(2023, 3, 12, tzinfo=NEW_YORK)
    assert span.end == datetime(2023, 3, 13, tzinfo=NEW_YORK)


def test_hours_ago_are_hours_that_passed() -> None:
    after_the_change = datetime(2023, 3, 12, 4, 30, tzinfo=NEW_YORK)
    [span] = dates("3 hours ago", after_the_change)
    assert span.start == datetime(2023, 3, 12, 0, tzinfo=NEW_YORK)


def test_now_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="aware"):
        dates("today", datetime(2023, 6, 14))  # noqa: DTZ001


# Texts made of the words the rules are about, which meet more of them than any text does by chance.
WORDS = """
last next this past the of in on at from to between and since before after until ago every a few couple half early mid
late day days week weeks weekend month months year years hour minutes Friday monday Sun Mon May may March march June
september Dec 7 7th 31 29 30 2 12 1900 2023 2100 5/7/2023 2023-05-07 2023-02-30 19:30 7pm pm Q3 quarter summer winter
Christmas today yesterday tomorrow tonight morning night 1990s 90s first second - , . ? ' 's İ
上 下 这 本 每 前 后 去 今 昨 明 年 月 日 号 天 周 星期 礼拜 末 五 三 十 一 二〇二三 两 半 几 个 2023年 5月 29日
2月 初 底 旬 春天 季度 上半年 最近 过去 未来 以来 到 至 从 之前 以后 早 晚上 七点 点 分 小时 分钟 圣诞节 国庆
５ 週 兩 個 後
"""
zones = st.sampled_from(
    [UTC, NEW_YORK, ZoneInfo("Pacific/Apia"), ZoneInfo("America/Sao_Paulo"), timezone(timedelta(hours=-14))]
)
any_text = st.text(alphabet=st.characters(exclude_categories=()))
soup = st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=12)
texts = any_text | soup.map(" ".join) | soup.map("".join)
any_now = st.datetimes(timezones=zones, allow_imaginary=False)
usual_now = st.datetimes(datetime(1970, 1, 1), datetime(2090, 1, 1), timezones=zones)  # noqa: DTZ001
days = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def check(text: str, spans: list[TimeSpan], now: datetime) -> None:
    free = 0
    for span in spans:
        start, end = span.at
        assert free <= start < end
        free = end
        assert text[start:end] == span.text
        assert span.start < span.end
        assert span.start.astimezone(UTC) < span.end.astimezone(UTC)
        assert span.start.tzinfo is span.end.tzinfo is now.tzinfo
        assert 1900 <= span.start.year <= span.end.year <= 2101


@given(texts, usual_now)
@example("\ud800 last \udfff week 十百两", NOW)
@example("İİİ last week", NOW)
@example("today 00:01 May", NOW)
@example("5月7日前两天前", NOW)
@example("10 minutes ago", datetime(2023, 11, 5, 1, 5, tzinfo=NEW_YORK, fold=1))
@example("the past hour", datetime(2023, 11, 5, 1, 5, tzinfo=NEW_YORK, fold=1))
def test_times_are_in_order_and_apart(text: str, now: datetime) -> None:
    for future in (False, True):
        check(text, dates(text, now, future=future), now)


@given(texts, any_now)
@example("yesterday, tomorrow night, last week, next year, 9999 years ago, 一百年后", datetime.min.replace(tzinfo=UTC))
@example("yesterday, tomorrow night, last week, next year, in 9999 years", datetime.max.replace(tzinfo=UTC))
@example(
    "9999 years before May 7, 2023, 2023年5月7日前9999年, since 2020, after 2020", datetime.max.replace(tzinfo=UTC)
)
def test_any_moment_will_do(text: str, now: datetime) -> None:
    for future in (False, True):
        check(text, dates(text, now, future=future), now)


EVERYWHERE = [replace(scanner, family=scanner.family._replace(core="")) for scanner in _scanners(LANGUAGES)]


@given(texts)
@example("x" * 100 + " last week " + "y" * 200 + "Wednesday,   the   30th   of   September,   2023")
def test_looking_only_around_the_cores_finds_everything(text: str) -> None:
    folded = _folded(text)
    assert len(folded) == len(folded.lower()) == len(text)
    around, everywhere = (resolved(find(folded, some), Calendar(NOW)) for some in (_scanners(LANGUAGES), EVERYWHERE))
    assert around == everywhere


def ordinal(day: int) -> str:
    return f"{day}{'th' if 11 <= day <= 13 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def han(number: int) -> str:
    tens, ones = divmod(number, 10)
    digits = "〇一二三四五六七八九"
    return (digits[tens] if tens > 1 else "") + ("十" if tens else "") + (digits[ones] if ones else "")


def written(day: date) -> list[str]:
    """A day in every way to write it in full."""
    month = day.strftime("%B")
    year = day.year
    ways = [
        day.isoformat(),
        f"{year}/{day.month}/{day.day}",
        f"{day:%Y.%m.%d}",
        f"{day:%m/%d/%Y}",
        f"{day.month}/{day.day}/{year}",
        f"{month} {day.day}, {year}",
        f"{month} {day.day} {year}",
        f"{month} {ordinal(day.day)}, {year}",
        f"{month[:3]} {day.day}, {year}",
        f"{day:%A}, {month} {day.day}, {year}",
        f"{day.day} {month} {year}",
        f"{day.day} {month[:3]} {year}",
        f"the {ordinal(day.day)} of {month}, {year}",
        f"{year}年{day.month}月{day.day}日",
        f"{year}年{day:%m}月{day:%d}号",
        f"{year} 年 {day.month} 月 {day.day} 日",
        f"{year}年{han(day.month)}月{han(day.day)}日",
        f"{year}年{day.month}月{day.day}日星期{'一二三四五六日'[day.weekday()]}",
        f"{year}年{day.month}月{day.day}日".translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789"}),
    ]
    if year < 2100:
        ways.append(f"{''.join('〇一二三四五六七八九'[int(c)] for c in str(year))}年{han(day.month)}月{han(day.day)}日")
    return ways


@given(days, usual_now, st.sampled_from(["{}", "It was {}.", "我{}去了上海", "（{}）", "when, {}, we met"]))
def test_a_full_date_is_that_day_whenever_it_is_read(day: date, now: datetime, frame: str) -> None:
    for way in written(day):
        [span] = dates(frame.format(way), now)
        # Samoa once left one out.
        assert span.start.date() == day or now.tzinfo == ZoneInfo("Pacific/Apia")
        assert (span.text, span.grain, span.relative) == (way, "day", False)


@given(st.integers(0, 9999), usual_now)
def test_so_many_days_ago(count: int, now: datetime) -> None:
    assume(now.tzinfo != ZoneInfo("Pacific/Apia"))
    day = now.date() - timedelta(days=count)
    for text in (f"{count} days ago", f"{count}天前", *([f"{han(count)}天前"] if 0 < count < 100 else [])):
        spans = dates(text, now)
        assert [span.start.date() for span in spans] == ([day] if day.year >= 1900 else [])


@given(st.integers(0, 999999).map(str), st.sampled_from("日号月年点天周"))
def test_a_number_and_a_unit_never_fail(number: str, unit: str) -> None:
    dates(f"{number}{unit}", NOW)


@each_case(
    "unit",
    [
        "May 7 ", "1", "1 ", " ", "a ", "last ", "from May 3 to ", "2023-", "the week before ", "yesterday 12:",
        "2022? ", "two and a half years and a half ", "every Friday ", "İ", "\u0300", "2023年", "上周五", "5月到",
        "两年半前", "一", "上",
    ],
)  # fmt: skip
def test_long_texts_take_linear_time(unit: str) -> None:
    started = time.process_time()
    dates((unit * 20_000)[:20_000], NOW)
    # A fraction of a second even where all of it is times; quadratic time would be much longer.
    assert time.process_time() - started < 120 * cpu_unit()


def test_nothing_is_compiled_until_it_is_needed() -> None:
    code = (
        "import re, sys; compile = re._compiler.compile; "
        "re._compiler.compile = lambda *a: sys.exit('early') if 'month' in str(a) or '月' in str(a) else compile(*a); "
        "import jiyi.languages.dates; print({'numpy', 'rjieba', 'zoneinfo'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("name", ["dates", "zh.dates"])
def test_examples_run(name: str) -> None:
    assert doctest.testmod(import_module(f"jiyi.languages.{name}")).failed == 0


def test_enough_cases() -> None:
    assert len(ENGLISH) + len(CHINESE) >= 120
    assert abs(len(ENGLISH) - len(CHINESE)) < 20


@each_case(("text", "number"), [("12", 12), ("十", 10), ("二十", 20), ("一百零五", 105), ("两", 2)])
def test_chinese_numbers(text: str, number: int) -> None:
    assert chinese_number(text) == number
