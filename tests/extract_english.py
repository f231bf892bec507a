"""How people say things in English: the sentence, the type, the attribute and value, and what is told."""

# Text | type | attribute | value | content. An empty field is not looked at; "ended" stands behind what is over.
STATED = """
I'm allergic to peanuts | fact | allergy | peanuts | The user is allergic to peanuts
I have a severe shellfish allergy | fact | allergy | shellfish | The user has a severe shellfish allergy
I'm lactose intolerant | fact | allergy | lactose | The user is lactose intolerant
Well, I'm a vegetarian | fact | diet | vegetarian | The user is a vegetarian
I went vegan two years ago | fact | diet | vegan | The user went vegan two years ago (2021)
I don't eat pork | preference | diet:pork | avoids | The user doesn't eat pork
I follow a keto diet | fact | diet | keto | The user follows a keto diet
I've been diagnosed with asthma | fact | health:asthma | asthma | The user has been diagnosed with asthma
I suffer from migraines | fact | health:migraines | migraines | The user suffers from migraines
I'm type 1 diabetic | fact | | | The user is type 1 diabetic
I take metformin twice a day | pattern | | twice a day | The user takes metformin twice a day
I'm terrified of spiders | fact | fear:spiders | spiders | The user is terrified of spiders
I live in Berlin | fact | home | Berlin | The user lives in Berlin
I'm based in Toronto these days | fact | home | Toronto | The user is based in Toronto these days
I moved to Lisbon last month | fact | home | Lisbon | The user moved to Lisbon last month (April 2023)
We relocated from Paris to Lyon | fact | home | Lyon | The user and others relocated from Paris to Lyon
Just moved to Austin! | fact | home | Austin | The user just moved to Austin
I used to live in Madrid | fact | home | Madrid ended | The user used to live in Madrid
I no longer live in Boston | fact | home | Boston ended | The user no longer lives in Boston
I grew up in a small town near Leeds | fact | hometown | | The user grew up in a small town near Leeds
I'm originally from Brazil | fact | hometown | Brazil | The user is originally from Brazil
I was born in 1990 | fact | birthday | 1990 | The user was born in 1990
My birthday is March 14 | fact | birthday | March 14 | The user's birthday is March 14
My name is Sam Lee | fact | name | Sam Lee | The user's name is Sam Lee
You can call me Ginny | fact | name | Ginny |
I'm 34 years old | fact | age | 34 | The user is 34 years old
I just turned 40 | fact | age | 40 | The user just turned 40
I work as a nurse at St Mary's | fact | works as | nurse | The user works as a nurse at St Mary's
I'm a software engineer at Google | fact | job | software engineer | The user is a software engineer at Google
I teach maths at a high school | fact | teaches:maths | maths | The user teaches maths at a high school
I run a small bakery in town | fact | | | The user runs a small bakery in town
I work from home | fact | | | The user works from home
I'm retired now | fact | job | retired | The user is retired now
My parents live in Ohio | fact | home | Ohio | The user's parents live in Ohio
I'm learning to cook | fact | learning:cook | cook | The user is learning to cook
I started a new job at Tesla | fact | employer | Tesla | The user started a new job at Tesla
My sister had a baby | event | birth | baby | The user's sister had a baby
I hate mornings | preference | likes:mornings | dislikes | The user hates mornings
I'm getting a divorce | fact | relationship | | The user is getting a divorce
I live with my sister | fact | household | sister | The user lives with their sister
My wife's car is a Fiat | fact | car | Fiat | The user's wife's car is a Fiat
I'm sober | fact | alcohol | does not drink | The user is sober
My flight is on Friday at 9am | event | | | The user's flight is on Friday at 9am (May 19, 2023)
I moved in three months ago | event | | | The user moved in three months ago (February 2023)
My birthday party is this weekend | event | | | The user's birthday party is this weekend (May 20, 2023)
I quit my job last week | fact | employer | | The user quit their job last week (May 8, 2023)
I got promoted to team lead | fact | job | team lead | The user got promoted to team lead
I used to work for a bank | fact | employer | bank ended | The user used to work for a bank
I'm studying law at Leiden | fact | education | law | The user is studying law at Leiden
I graduated from MIT in 2015 | fact | education | MIT | The user graduated from MIT in 2015
I have a PhD in chemistry | fact | education | | The user has a PhD in chemistry
I have two kids and a dog | fact | family | | The user has two kids and a dog
I've got a twin brother | fact | family | twin brother | The user has got a twin brother
I'm married to a carpenter | fact | relationship | married | The user is married to a carpenter
I'm divorced | fact | relationship | divorced | The user is divorced
We adopted a kitten called Miso | fact | pet | | The user and others adopted a kitten called Miso
My wife is a pediatric surgeon | fact | job | | The user's wife is a pediatric surgeon
My sister Anna lives in Oslo | fact | home | Oslo | The user's sister Anna lives in Oslo
My dog's name is Rex | fact | name:dog | Rex | The user's dog's name is Rex
My son is seven | fact | age | seven | The user's son is seven
I speak fluent Spanish | fact | language | | The user speaks fluent Spanish
I play the cello in an orchestra | fact | | | The user plays the cello in an orchestra
I drive a blue Volvo | fact | car | | The user drives a blue Volvo
I'm learning how to weld | fact | | | The user is learning how to weld
I'm good at chess | fact | skill:chess | chess | The user is good at chess
My blood type is O negative | fact | blood type | O negative | The user's blood type is O negative
My email is ana@example.org | fact | email | | The user's email is ana@example.org
My manager is Sarah | fact | manager | Sarah | The user's manager is Sarah
I don't smoke anymore | fact | smoking | smokes ended | The user doesn't smoke anymore
I stopped drinking coffee | preference | | | The user stopped drinking coffee
I switched from Vim to Helix | fact | uses:editor | Helix | The user switched from Vim to Helix
We use PostgreSQL at work | fact | uses:database | PostgreSQL | The user and others use PostgreSQL at work
I replaced my MacBook with a ThinkPad | fact | uses:computer | ThinkPad |
I love hiking | preference | likes:hiking | likes | The user loves hiking
I really enjoy baking bread | preference | | likes | The user really enjoys baking bread
I'm a huge fan of jazz | preference | likes:jazz | likes | The user is a huge fan of jazz
I hate cilantro | preference | likes:cilantro | dislikes | The user hates cilantro
I can't stand loud music | preference | likes:loud music | dislikes | The user can't stand loud music
I don't like mushrooms | preference | likes:mushrooms | dislikes | The user doesn't like mushrooms
I prefer tea over coffee | preference | prefers | tea | The user prefers tea over coffee
I'd rather walk than drive | preference | prefers | | The user would rather walk than drive
My favourite colour is green | preference | favourite:colour | green | The user's favourite colour is green
Sushi is my favorite food | preference | favourite:food | Sushi | Sushi is the user's favorite food
I take my coffee black | preference | prefers | | The user takes their coffee black
I'm not into horror films | preference | likes:horror films | dislikes | The user is not into horror films
Please answer in German from now on | preference | instruction:language | |
Don't use emojis | preference | instruction | | The user wants the assistant not to use emojis
I'm planning to visit Japan next spring | task | plan | | The user is planning to visit Japan next spring (March 2024)
I want to learn Portuguese | task | plan | learn Portuguese | The user wants to learn Portuguese
I need to renew my passport by June | task | plan | | The user needs to renew their passport by June
I have to finish the report tomorrow | task | plan | | The user has to finish the report tomorrow (May 16, 2023)
I'm going to run a marathon in October | task | plan | | The user is going to run a marathon in October (2023)
Remind me to call mom tomorrow | task | reminder | call mom |
My goal is to lose five kilos | task | goal | | The user's goal is to lose five kilos
I have an exam on Friday | event | appointment | | The user has an exam on Friday (May 19, 2023)
I'm flying to Rome next week | event | plan | | The user is flying to Rome next week (May 22, 2023)
We decided to use PostgreSQL | fact | decision | use PostgreSQL | The user and others decided to use PostgreSQL
I've decided to sell the car | fact | decision | sell car | The user has decided to sell the car
I chose the blue one over the red one | fact | decision | blue one | The user chose the blue one over the red one
I swim every Tuesday morning | pattern | habit:swim | every Tuesday morning | The user swims every Tuesday morning
I go to the gym three times a week | pattern | | three times a week | The user goes to the gym three times a week
I usually get up at six | pattern | | six | The user usually gets up at six
On Sundays I call my parents | pattern | | On Sundays | On Sundays the user calls their parents
My daughter has piano lessons every Wednesday | pattern | | every Wednesday |
I went to the Louvre yesterday | event | event:go | Louvre | The user went to the Louvre yesterday (May 14, 2023)
Last week, I bought a new laptop | event | | | Last week (May 8, 2023), the user bought a new laptop
My daughter started school on Monday | event | | | The user's daughter started school on Monday (May 8, 2023)
I ran my first half marathon in April | event | event:run | | The user ran their first half marathon in April (2023)
Lesson learned: always back up before migrating | skill | lesson | | Lesson learned: always back up before migrating
The trick is to soak the beans overnight | skill | lesson | | The trick is to soak the beans overnight
I'm vegan, what should I cook tonight? | fact | diet | vegan | The user is vegan
I can't eat that because I'm allergic to nuts | fact | allergy | nuts | The user is allergic to nuts
By the way, I live in Ghent and work as a florist | fact | works as | florist | The user works as a florist
The lease on our flat runs out in July | event | plan | | The lease on the user's flat runs out in July (2023)
There's a metal plate in my knee from a car crash | fact | | |
Next meeting is Thursday the 18th at Olu's | event | | | Next meeting is Thursday the 18th (May 18, 2023) at Olu's
Code freeze starts the 26th at noon | event | | | Code freeze starts the 26th (May 26, 2023) at noon
Expenses have to be in by the end of the month | | | | Expenses have to be in by the end of the month (May 31, 2023)
I'm staying at the Hilton downtown for this trip | fact | stay | |
Retro is every other week now | pattern | | |
Our weekly sync with the Lisbon team is on Tuesdays at ten | pattern | schedule:lisbon sync | tuesdays |
The Lisbon sync has moved from Tuesday to Thursday at three | pattern | schedule:lisbon sync | thursday |
I pay for Spotify, 10.99 a month | fact | uses:music | Spotify |
I went with Tidal instead | fact | uses:music | Tidal |
I'm leaving Brightline on June 3 | fact | employer | |
I rent a one-bed in Leeds, £925 a month | fact | | |
The builder starts on June 3 and says it takes three weeks | event | | | The builder starts on June 3 (2023)
"""

# None of these is a memory.
NOT_MEMORIES = """
Someone on a forum wrote that beagles live to twenty on raw food
Translate into French: I live in Paris
Notes from the design review
I like your second point
I need to double check
Everest is 8849 metres high
Write a short bio, my name is Bob and I'm twenty
My mother would rather die than move into a home, she always says.
Hi there!
Thanks a lot, that helps.
How are you today?
What's the capital of Peru?
Can you write a function that sorts a list?
If I had money I'd buy a boat
If I moved to Rome, I would learn Italian.
What if I quit my job?
I might move to Canada, maybe.
My boss says the company is doomed
I heard that Tom quit his job
Apparently Anna hates tea.
Translate into French: I live in Paris
Write a poem about a man who says "I live in Paris"
She wrote: "I love my job at the bank."
I'm a pilot. Just kidding!
In the story, I am a wizard who lives in a tower.
Do I like coffee?
I should move to Berlin?
ok
lol
Good morning!
Sounds good to me.
I see what you mean.
I think that's right.
I want to know how this works
I need help with this
I ran the script and got an error
I'd like to ask you something
Let me think about it.
That's great!
Sorry, my bad.
The weather is nice.
Imagine I live on Mars.
I wish I had a garden.
Should I buy a house?
I guess so.
You are right.
That makes sense, thank you so much!
It depends.
"""
