# Completions of kquota for bash, 3.2 and newer; the package bash-completion is not needed.

_kquota() {
    local program='# What can stand at the cursor: one program in POSIX awk, the same for bash, zsh and fish.
#
#   awk PROGRAM TABLE read|typed COMMAND WORD... CURRENT
#
# The words are those before the cursor, as the shell would read them or as they are typed, quotes and all. The first
# line of the answer is `words`, `files` or `folders`, a tab, and the part of CURRENT that stays; each other line is a
# candidate for what comes after it, a tab, and its description. Who gives words as they are typed has no matching of
# its own: only what CURRENT is the beginning of is told. kquota itself is started for a cluster'\''s topics and brokers
# alone, when those that it kept (kquota/stores/state/completion.py) are old.

BEGIN {
    TAB = sprintf("%c", 9)
    QUOTE = sprintf("%c", 39)
    BACKSLASH = sprintf("%c", 92)
    CONNECTIONS = split("bootstrap-server zookeeper cluster command-config zk-tls-config-file zk-sasl-config-file",
                        CONNECTION, " ")
    read_table(ARGV[1])
    path = "kquota"
    if (ARGV[2] == "typed") for (at = 3; at < ARGC; at++) ARGV[at] = unquoted(ARGV[at])
    for (at = 4; at < ARGC - 1; at++) pass(ARGV[at])
    complete(ARGV[ARGC - 1])
    exit
}

function unquoted(word,    i, letter, open, text) {
    for (i = 1; i <= length(word); i++) {
        letter = substr(word, i, 1)
        if (letter == open) open = ""
        else if (open == "" && (letter == QUOTE || letter == "\"")) open = letter
        else if (letter == BACKSLASH && open != QUOTE) text = text substr(word, ++i, 1)
        else text = text letter
    }
    return text
}

# C command description · O command name,name once|many kind description · A command kind · V list word description
function read_table(text,    lines, count, i, field, names, name, option) {
    count = split(text, lines, "\n")
    for (i = 1; i <= count; i++) {
        split(lines[i], field, TAB)
        if (field[1] == "C") {
            COMMAND[field[2]] = field[3]
            CHILD[parent(field[2]), ++CHILDREN[parent(field[2])]] = field[2]
        } else if (field[1] == "O") {
            option = field[2] SUBSEP (++OPTIONS[field[2]])
            for (name = split(field[3], names, ","); name > 0; name--) OPTION[field[2], names[name]] = option
            NAME[option] = names[1]
            MANY[option] = field[4] == "many"
            KIND[option] = field[5]
            TOLD[option] = field[6]
        } else if (field[1] == "A") {
            ARGUMENT[field[2]] = field[3]
        } else if (field[1] == "V") {
            WORD[field[2], ++WORDS[field[2]]] = field[3]
        }
    }
}

function parent(command) {
    return command ~ / / ? substr(command, 1, match(command, / [^ ]*$/) - 1) : ""
}

# A word that the cursor is past: an option'\''s value, an option, a command or an argument.
function pass(word,    option) {
    if (waiting != "") {
        note(waiting, word)
        waiting = ""
    } else if (word ~ /^-/) {
        option = OPTION[path, name_in(word)]
        GIVEN[option]++
        if (word ~ /^--[^=]*=/) note(option, substr(word, index(word, "=") + 1))
        else if (option != "" && KIND[option] != "flag") waiting = option
    } else if ((path " " word) in COMMAND) {
        path = path " " word
    } else {
        arguments++
    }
}

function note(option, text) {
    VALUE[NAME[option]] = text
    if (NAME[option] == "--entity-type") TYPE[text] = 1
}

function name_in(word) {
    return word ~ /^--[^=]*=/ ? substr(word, 1, index(word, "=") - 1) : word
}

function complete(word,    i, name) {
    if (waiting != "") {
        value(KIND[waiting], "", word)
    } else if (word ~ /^--[^=]*=/) {
        name = name_in(word)
        value(KIND[OPTION[path, name]], name "=", substr(word, length(name) + 2))
    } else if (word !~ /^-/ && path in CHILDREN) {
        begin("words", "", word)
        for (i = 1; i <= CHILDREN[path]; i++) {
            name = CHILD[path, i]
            offer(substr(name, length(path) + 2), COMMAND[name])
        }
    } else if (word !~ /^-/ && path in ARGUMENT) {
        value(arguments ? "free" : ARGUMENT[path], "", word)
    } else {
        begin("words", "", word)
        options()
    }
}

# One that stands already is offered again only if it may.
function options(    i, option) {
    for (i = 1; i <= OPTIONS[path]; i++) {
        option = path SUBSEP i
        if (TOLD[option] != "" && (MANY[option] || !GIVEN[option])) offer(NAME[option], TOLD[option])
    }
}

# What an option takes: the kinds of completions/generate.py. `keep` is the part of the word before the value.
function value(kind, keep, text,    list) {
    if (kind == "files" || kind == "folders") {
        begin(kind, keep, text)
    } else if (kind ~ /,$/) {
        kind = substr(kind, 1, length(kind) - 1)
        list = text
        sub(/[^,:]*$/, "", list)
        begin("words", keep list, substr(text, length(list) + 1))
        already(list)
        single(kind)
    } else if (kind == "pairs" || kind == "topic-pairs") {
        pairs(kind, keep, text)
    } else {
        begin("words", keep, text)
        single(kind)
    }
}

function single(kind,    i) {
    if (kind == "clusters") clusters()
    else if (kind == "topics" || kind == "brokers") values(kind)
    else if (kind == "entity-types") entity_types()
    else if (kind == "entity-names") values("topics" in TYPE ? "topics" : "brokers" in TYPE ? "brokers" : "")
    else if (kind == "keys") keys("")
    else for (i = 1; i <= WORDS[kind]; i++) offer(WORD[kind, i], "")
}

# key=value,key=[value,value],… of which only keys are known; a `=` ends them, and no space comes after it.
function pairs(kind, keep, text,    list, rest) {
    rest = text
    while (match(rest, /^[^=,]*=([[][^]]*[]]|[^[,][^,]*)?,/)) rest = substr(rest, RLENGTH + 1)
    list = substr(text, 1, length(text) - length(rest))
    if (kind == "topic-pairs") { rest = text; list = "" }
    begin("words", keep list, rest)
    if (rest ~ /=/) return
    already(list)
    if (kind == "topic-pairs") key_list("topics", "=")
    else keys("=")
}

function already(list,    i, count, part) {
    count = split(list, part, ",")
    for (i = 1; i <= count; i++) {
        sub(/=.*/, "", part[i])
        if (part[i] != "") TAKEN[part[i]] = 1
    }
}

# Of the entity types that are named, in the long form or in the short one; of all where none is.
function keys(after,    i, type, any, wanted) {
    for (i = 1; i <= WORDS["entity-types"]; i++) {
        type = WORD["entity-types", i]
        if (type in TYPE || given("--" type) || given("--" singular(type)) || given("--" singular(type) "-defaults")) any = wanted[type] = 1
    }
    for (i = 1; i <= WORDS["entity-types"]; i++) {
        type = WORD["entity-types", i]
        if (!any || type in wanted) key_list(type, after)
    }
}

function singular(type) {
    return substr(type, 1, length(type) - 1)
}

function given(name) {
    return GIVEN[OPTION[path, name]]
}

function key_list(type, after,    i, key) {
    for (i = 1; i <= WORDS["keys of " type]; i++) {
        key = WORD["keys of " type, i]
        if (!(key in TAKEN)) offer(key after, "")
        TAKEN[key] = 1
    }
}

# Only users and clients stand together.
function entity_types(    i, type, any) {
    for (type in TYPE) any = 1
    for (i = 1; i <= WORDS["entity-types"]; i++) {
        type = WORD["entity-types", i]
        if (!any || (type == "users" && "clients" in TYPE && !("users" in TYPE)) ||
            (type == "clients" && "users" in TYPE && !("clients" in TYPE))) offer(type, "")
    }
}

# The [clusters.NAME] of config.toml whose names need no quotes in a shell.
function clusters(    file, line) {
    file = folder("XDG_CONFIG_HOME", "/.config") "/config.toml"
    while ((getline line < file) > 0) {
        if (line !~ /^[[:space:]]*[[][[:space:]]*clusters[[:space:]]*[.][^.]*[]]/) continue
        sub(/^[^.]*[.][[:space:]]*["]?/, "", line)
        sub(/["]?[[:space:]]*[]].*/, "", line)
        if (is_plain(line)) offer(line, "")
    }
}

function folder(name, usual) {
    return (substr(ENVIRON[name], 1, 1) == "/" ? ENVIRON[name] : ENVIRON["HOME"] usual) "/kquota"
}

# Names that mean nothing to a shell, and no option to a command.
function is_plain(name) {
    return name ~ /^[A-Za-z0-9._][A-Za-z0-9._-]*$/
}

# The topics or brokers of the cluster that the line or the environment names: kept ones while they are fresh, else
# those that kquota tells. It keeps them, and also that it got none, so that a dead broker holds up one TAB and not all.
function values(kind,    i, text, key, file, known, asked, line, now, until) {
    for (i = 1; i <= CONNECTIONS; i++) {
        text = VALUE["--" CONNECTION[i]]
        if (text != "") asked = asked " --" CONNECTION[i] "=" quoted(text)
        else text = ENVIRON[variable(CONNECTION[i])]
        if (text ~ /[[:cntrl:]]/) return
        if (text != "" && i <= 3) known = 1
        key = key (i > 1 ? TAB : "") text
    }
    if (kind == "" || !known) return
    file = key
    gsub(TAB, "_", file)
    gsub(/[^A-Za-z0-9.-]/, "_", file)
    file = folder("XDG_CACHE_HOME", "/.cache") "/completion/" substr(file, 1, 200)
    srand()
    now = srand()
    if ((getline line < file) > 0 && line == key && (getline until < file) > 0 && until > now && until <= now + 60) {
        while ((getline line < file) > 0) told(kind, line)
    } else {
        line = (index(ARGV[3], "/") ? quoted(ARGV[3]) : "kquota") " complete" asked " </dev/null 2>/dev/null"
        while ((line | getline text) > 0) told(kind, text)
    }
}

function told(kind, line,    space) {
    space = index(line, " ")
    if (substr(line, 1, space - 1) == kind && is_plain(substr(line, space + 1))) offer(substr(line, space + 1), "")
}

function variable(option) {
    gsub(/-/, "_", option)
    return "KQUOTA_" toupper(option)
}

function quoted(text) {
    gsub(QUOTE, QUOTE "\"" QUOTE "\"" QUOTE, text)
    return QUOTE text QUOTE
}

function begin(mode, keep, text) {
    print mode TAB keep
    typed = ARGV[2] == "typed" ? text : ""
}

function offer(word, description) {
    if (substr(word, 1, length(typed)) == typed && !(word in TAKEN && word !~ /=$/)) print word TAB description
}
'
    local table='C	kquota	Manage Kafka quotas, move partitions under a throttle, and restore every throttle afterwards
O	kquota	--version	once	flag	Print the version and exit
O	kquota	--help	once	flag	Show this message and exit
C	kquota configs	Set and show quotas, and the configs of topics, brokers and other entities, like kafka-configs
O	kquota configs	--bootstrap-server	once	free	Connect through these brokers
O	kquota configs	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota configs	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota configs	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota configs	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota configs	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota configs	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota configs	--alter	once	flag	Change the configs of one entity
O	kquota configs	--describe	once	flag	Show the configs of entities
O	kquota configs	--all	once	flag	With --describe: also show static and default configs
O	kquota configs	--add-config	once	pairs	Configs to set
O	kquota configs	--add-config-file	once	files	Java properties file with configs to set
O	kquota configs	--password-file	once	files	File with the password of a SCRAM credential, or - for stdin
O	kquota configs	--delete-config	many	keys,	Configs to remove
O	kquota configs	--entity-type	many	entity-types	Type of the entity: topics, clients, users, brokers, ips, client-metrics, groups, broker-loggers
O	kquota configs	--entity-name	many	entity-names	Name of the entity, one for each --entity-type, in the same order
O	kquota configs	--entity-default	once	flag	Use the default entity of the type instead of a name
O	kquota configs	--user	once	free	Short for --entity-type users --entity-name NAME (a principal'\''s name)
O	kquota configs	--user-defaults	once	flag	Short for --entity-type users --entity-default
O	kquota configs	--client	once	free	Short for --entity-type clients --entity-name NAME (a client-id)
O	kquota configs	--client-defaults	once	flag	Short for --entity-type clients --entity-default
O	kquota configs	--ip	once	free	Short for --entity-type ips --entity-name NAME (an address or host)
O	kquota configs	--ip-defaults	once	flag	Short for --entity-type ips --entity-default
O	kquota configs	--topic	once	topics	Short for --entity-type topics --entity-name NAME (a topic'\''s name)
O	kquota configs	--broker	once	brokers	Short for --entity-type brokers --entity-name NAME (a broker'\''s id)
O	kquota configs	--broker-defaults	once	flag	Short for --entity-type brokers --entity-default
O	kquota configs	--client-metrics	once	free	Short for --entity-type client-metrics --entity-name NAME (a subscription'\''s name)
O	kquota configs	--group	once	free	Short for --entity-type groups --entity-name NAME (a group'\''s id)
O	kquota configs	--broker-logger	once	brokers	Short for --entity-type broker-loggers --entity-name NAME (a broker'\''s id)
O	kquota configs	--force	once	flag	
O	kquota configs	--dry-run	once	flag	With --alter: check everything, and print the values that would be sent
O	kquota configs	--yes	once	flag	Do not ask for confirmation
O	kquota configs	--output	once	text|json|tsv	Format of stdout
O	kquota configs	--help	once	flag	Show this message and exit
C	kquota reassign-partitions	Move partitions under a throttle, and restore every throttle exactly as it was
O	kquota reassign-partitions	--bootstrap-server	once	free	Connect through these brokers
O	kquota reassign-partitions	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota reassign-partitions	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota reassign-partitions	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota reassign-partitions	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota reassign-partitions	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota reassign-partitions	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota reassign-partitions	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota reassign-partitions	--generate	once	flag	Propose a plan for the given topics
O	kquota reassign-partitions	--execute	once	flag	Start the moves of the plan, under the given throttle
O	kquota reassign-partitions	--verify	once	flag	Report whether the moves have ended
O	kquota reassign-partitions	--cancel	once	flag	Stop the moves
O	kquota reassign-partitions	--list	once	flag	Show every running move of the cluster
O	kquota reassign-partitions	--reassignment-json-file	once	files	The plan, as --generate and `kquota move plan` print it
O	kquota reassign-partitions	--all-runs	once	flag	For --verify: verify every open run instead of one plan, for example from cron
O	kquota reassign-partitions	--topics-to-move-json-file	once	files	For --generate, the topics: {"topics":[{"topic":"foo"}],"version":1}
O	kquota reassign-partitions	--broker-list	once	brokers,	For --generate, the brokers to place the topics on
O	kquota reassign-partitions	--disable-rack-aware	once	flag	For --generate: ignore the racks of the brokers
O	kquota reassign-partitions	--seed	once	free	For --generate: seed of an earlier proposal, to repeat it
O	kquota reassign-partitions	--throttle	once	free	Throttle rate for the copies that each broker sends and receives, for example 50MB/s
O	kquota reassign-partitions	--replication-quota	once	free	KIP-73'\''s name for --throttle
O	kquota reassign-partitions	--unthrottled	once	flag	For --execute: confirm that the copies need no throttle, and print no note about it
O	kquota reassign-partitions	--replica-alter-log-dirs-throttle	once	free	Throttle rate for copies between the log dirs of a broker, for example 50MB/s
O	kquota reassign-partitions	--throttle-whole-topics	once	flag	Throttle all replicas of a topic (*) if its throttled replica list would otherwise be too long for a broker
O	kquota reassign-partitions	--preserve-throttles	once	flag	For --verify and --cancel: do not restore any throttle
O	kquota reassign-partitions	--clear-all	once	flag	For --verify: if no move is running, clear the rates of all brokers and the lists of the plan'\''s topics, including those of other tools and users, as Kafka'\''s --verify does
O	kquota reassign-partitions	--additional	once	flag	For --execute: start even if other moves are running in the cluster
O	kquota reassign-partitions	--disallow-replication-factor-change	once	flag	For --execute: refuse a plan that changes a replication factor
O	kquota reassign-partitions	--timeout	once	free	Time to wait for moves between log dirs to start (--cancel: to stop)
O	kquota reassign-partitions	--force	once	flag	Run the command even if a check refuses it as dangerous
O	kquota reassign-partitions	--wait	once	flag	For --execute: watch the moves until they have ended, like `kquota move watch`, and then restore the throttle
O	kquota reassign-partitions	--reason	once	free	Reason that colleagues see
O	kquota reassign-partitions	--dry-run	once	flag	Check everything and print the changes, without writing them
O	kquota reassign-partitions	--yes	once	flag	Do not ask for confirmation
O	kquota reassign-partitions	--state-dir	once	folders	Folder for the run journals
O	kquota reassign-partitions	--quiet	once	flag	Print only errors and other messages that need action, on stderr
O	kquota reassign-partitions	--textfile	once	files	Also write metrics of the cluster for node exporter'\''s textfile collector
O	kquota reassign-partitions	--output	once	text|json|tsv	Format of stdout
O	kquota reassign-partitions	--help	once	flag	Show this message and exit
C	kquota topics	Create, grow and delete topics under a mutation quota; list and describe them
O	kquota topics	--bootstrap-server	once	free	Connect through these brokers
O	kquota topics	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota topics	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota topics	--create	once	flag	Create topics
O	kquota topics	--alter	once	flag	Add partitions to topics
O	kquota topics	--delete	once	flag	Delete topics
O	kquota topics	--list	once	flag	Print the names of topics
O	kquota topics	--describe	once	flag	Show topics and their partitions
O	kquota topics	--topic	many	topics	Name of a topic or, except with --create, a regular expression
O	kquota topics	--from-file	once	files	File with one topic per line: NAME
O	kquota topics	--partitions	once	free	Number of partitions of each topic
O	kquota topics	--replication-factor	once	free	With --create: number of replicas of each partition
O	kquota topics	--replica-assignment	once	brokers,	Brokers of each partition, from partition 0, for example 1:2,2:3 (brokers 1 and 2, then brokers 2 and 3)
O	kquota topics	--config	many	topic-pairs	Config of the new topics
O	kquota topics	--if-not-exists	once	flag	With --create: do not fail if a topic exists
O	kquota topics	--if-exists	once	flag	With --alter, --delete, --describe: do not fail if a topic does not exist
O	kquota topics	--topic-id	once	free	With --describe: show only the topic with this id (Kafka 2.8 or newer)
O	kquota topics	--exclude-internal	once	flag	Exclude Kafka'\''s internal topics
O	kquota topics	--topics-with-overrides	once	flag	Only topics with overridden configs
O	kquota topics	--under-replicated-partitions	once	flag	Only partitions with an out-of-sync replica
O	kquota topics	--unavailable-partitions	once	flag	Only partitions without a leader
O	kquota topics	--under-min-isr-partitions	once	flag	Only partitions with fewer in-sync replicas than min.insync.replicas
O	kquota topics	--at-min-isr-partitions	once	flag	Only partitions with exactly min.insync.replicas in-sync replicas
O	kquota topics	--no-retry-quota-violated	once	flag	Stop at the first rejection by the mutation quota
O	kquota topics	--timeout	once	free	Time limit for retries of rejected topics, for example 10m
O	kquota topics	--dry-run	once	flag	Check the change and print it, without sending it
O	kquota topics	--validate-only	once	flag	With --create or --alter: let the controller check the change without making it
O	kquota topics	--yes	once	flag	Do not ask for confirmation
O	kquota topics	--output	once	text|json|tsv	Format of stdout
O	kquota topics	--force	once	flag	
O	kquota topics	--zookeeper	once	free	
O	kquota topics	--help	once	flag	Show this message and exit
C	kquota leader-election	Elect leaders like kafka-leader-election, also in batches with a health check
O	kquota leader-election	--bootstrap-server	once	free	Connect through these brokers
O	kquota leader-election	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota leader-election	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota leader-election	--election-type	once	preferred|unclean	preferred: the first replica becomes the leader
O	kquota leader-election	--topic	once	topics	Topic of the partition; needs --partition
O	kquota leader-election	--partition	once	free	Partition of the topic
O	kquota leader-election	--path-to-json-file	once	files	JSON file of partitions: {"partitions":[{"topic":"foo","partition":1}]}
O	kquota leader-election	--all-topic-partitions	once	flag	Every partition that needs an election of this type
O	kquota leader-election	--batch	once	free	Maximum number of partitions in one request
O	kquota leader-election	--pause	once	free	With --batch: time between two batches, for example 5s
O	kquota leader-election	--settle	once	free	With --batch: maximum wait for the cluster to become healthy after a batch
O	kquota leader-election	--yes	once	flag	Do not ask for confirmation
O	kquota leader-election	--dry-run	once	flag	Print the changes, without writing them
O	kquota leader-election	--output	once	text|json	Format of stdout
O	kquota leader-election	--admin.config	once	free	
O	kquota leader-election	--help	once	flag	Show this message and exit
C	kquota log-dirs	Show replica sizes like kafka-log-dirs, and record them in a history
O	kquota log-dirs	--bootstrap-server	once	free	Connect through these brokers
O	kquota log-dirs	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota log-dirs	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota log-dirs	--describe	once	flag	Print the size of every replica in bytes, as JSON
O	kquota log-dirs	--snapshot	once	folders	Write the replica sizes into a new snapshot file in DIR
O	kquota log-dirs	--compact	once	folders	Compact the snapshots in DIR into Parquet, with Spark
O	kquota log-dirs	--topic-list	once	topics,	Only these topics
O	kquota log-dirs	--broker-list	once	brokers,	Only these brokers
O	kquota log-dirs	--conf	many	free	Spark setting
O	kquota log-dirs	--debug	once	flag	Show the traceback of an error, including Spark'\''s frames
O	kquota log-dirs	--output	once	text|json	Format of stdout
O	kquota log-dirs	--help	once	flag	Show this message and exit
C	kquota move	Plan, estimate, run, watch, adjust, resume, undo and report on partition moves
O	kquota move	--help	once	flag	Show this message and exit
C	kquota move plan	Plan a move that copies the fewest bytes: drain or add brokers, set replication factors, repair racks, or balance brokers
O	kquota move plan	--bootstrap-server	once	free	Connect through these brokers
O	kquota move plan	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move plan	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move plan	--drain	once	brokers,	Move all replicas off these brokers, alive or dead
O	kquota move plan	--add	once	brokers,	Move replicas to these brokers until their bytes are within --tolerance of the mean
O	kquota move plan	--replication-factor	once	free	Set N replicas for each partition
O	kquota move plan	--repair-racks	once	flag	Spread each partition over as many racks as possible
O	kquota move plan	--balance	once	flag	Bring every broker'\''s bytes within --tolerance of the mean
O	kquota move plan	--balance-log-dirs	once	free	Balance the bytes in the log dirs of this broker
O	kquota move plan	--tolerance	once	free	Largest distance from the mean bytes with --add, --balance and --balance-log-dirs
O	kquota move plan	--topics	many	topics,	Move only these topics
O	kquota move plan	--brokers	once	brokers,	Place new replicas only on these brokers
O	kquota move plan	--disk-limit	once	free	Highest disk usage that the plan may cause on a broker or log dir
O	kquota move plan	--disk	once	free	Total disk size to assume for each broker whose disk size is unknown, for example 2TB
O	kquota move plan	--history	many	files	Use sizes from the newest snapshot in a file or folder instead of the live sizes
O	kquota move plan	--replica-alter-log-dirs-throttle	once	free	Throttle rate for copies between the log dirs of a broker, for example 50MB/s
O	kquota move plan	--explain	once	flag	Show all moves on stderr, not only the first 20
O	kquota move plan	--output	once	text|json	Format of stdout
O	kquota move plan	--help	once	flag	Show this message and exit
C	kquota move estimate	Estimate how long a throttled move takes, whether it can finish, and which broker is the bottleneck
O	kquota move estimate	--bootstrap-server	once	free	Connect through these brokers
O	kquota move estimate	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move estimate	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move estimate	--reassignment-json-file	once	files	The plan in the format of kafka-reassign-partitions, JSON lines or Parquet; a file or a folder
O	kquota move estimate	--throttle	once	free	Replication throttle of each broker, for example 50MB/s
O	kquota move estimate	--replica-alter-log-dirs-throttle	once	free	Throttle rate for copies between the log dirs of a broker, for example 50MB/s
O	kquota move estimate	--deadline	once	free	Time in which the move must finish, for example 6h
O	kquota move estimate	--nic	once	free	Network bandwidth of each broker, for example 10Gbit/s
O	kquota move estimate	--max-impact	once	free	Largest share of --nic for the throttle, for example 30%
O	kquota move estimate	--log-dirs	many	files	Sizes from the output of kafka-log-dirs; a file or glob, repeatable
O	kquota move estimate	--history	many	files	Snapshots for write rates, and for sizes if no other source is given
O	kquota move estimate	--history-window	once	free	Use only the newest part of the history, for example 7d
O	kquota move estimate	--cluster-id	once	free	Cluster to use, if the history contains several
O	kquota move estimate	--bytes-in	many	files	Write rate of a broker, repeatable; or a file with write rates: CSV, JSON or a Prometheus query result
O	kquota move estimate	--sample	once	free	Time to measure write rates on the live cluster
O	kquota move estimate	--assume-size	once	free	Size to assume for partitions that have no known size, for example 10GB
O	kquota move estimate	--waves	once	free	Split the move into N waves of about the same size
O	kquota move estimate	--max-in-flight	once	free	Largest size of a wave, for example 500GB
O	kquota move estimate	--spark-master	once	free	Spark cluster that runs the job: spark://HOST:PORT, yarn, k8s://URL, local[N]
O	kquota move estimate	--spark-remote	once	free	Spark Connect server that runs the job
O	kquota move estimate	--conf	many	free	Spark setting
O	kquota move estimate	--debug	once	flag	Show the traceback of an error, including Spark'\''s frames
O	kquota move estimate	--report	once	files	Also write the estimate as an HTML page, for example for a change ticket
O	kquota move estimate	--state-dir	once	folders	Folder for the run journals
O	kquota move estimate	--output	once	text|json	Format of stdout
O	kquota move estimate	--help	once	flag	Show this message and exit
C	kquota move run	Run a whole move: check the cluster, throttle, move in waves, wait, and restore the throttle
A	kquota move run	free
O	kquota move run	--bootstrap-server	once	free	Connect through these brokers
O	kquota move run	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move run	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move run	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota move run	--throttle	once	free	Throttle rate for the copies that each broker sends and receives, for example 50MB/s
O	kquota move run	--unthrottled	once	flag	Copy without a throttle
O	kquota move run	--deadline	once	free	Change the throttle so that the move ends after this duration (for example 2h) or at this time (for example 2026-11-24T06:00:00+01:00)
O	kquota move run	--min-rate	once	free	With --deadline or --protect: the lowest throttle
O	kquota move run	--max-rate	once	free	With --deadline or --protect: the highest throttle
O	kquota move run	--between	once	free	Throttles by the local time of this host, for example 22:00-06:00=200MB/s,else=40MB/s
O	kquota move run	--protect	once	flag	Raise the throttle while kquota'\''s own writes to a scratch topic are fast
O	kquota move run	--max-latency	once	free	With --protect: the latency above which a write is slow, for example 20ms
O	kquota move run	--metrics	once	free	With --protect: also react to the produce times and request throttle times that these Prometheus JMX exporters of the brokers report
O	kquota move run	--batch	once	free	Move at most N partitions at the same time
O	kquota move run	--max-per-broker	once	free	Copy at most N replicas to a broker at the same time
O	kquota move run	--max-in-flight	once	free	Copy at most this many bytes at the same time, for example 100GB
O	kquota move run	--elect-leaders	once	flag	After the moves, elect the preferred leaders of the plan'\''s partitions, in batches
O	kquota move run	--election-batch	once	free	With --elect-leaders: partitions in one batch
O	kquota move run	--force	once	flag	Start even if a check fails: unhealthy partitions outside the plan, other moves that run or wait, too little disk space, a throttle that is too low, or too few replicas in sync
O	kquota move run	--abort-on-trouble	once	flag	Undo the move if a partition outside the plan loses its leader or an in-sync replica
O	kquota move run	--reason	once	free	Reason that colleagues see
O	kquota move run	--yes	once	flag	Do not ask for confirmation
O	kquota move run	--state-dir	once	folders	Folder for the run journals
O	kquota move run	--dry-run	once	flag	Print the changes, without writing them
O	kquota move run	--output	once	text|json	Format of stdout
O	kquota move run	--help	once	flag	Show this message and exit
C	kquota move status	Show the open runs, their progress, and who began them
O	kquota move status	--bootstrap-server	once	free	Connect through these brokers
O	kquota move status	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move status	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move status	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move status	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move status	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move status	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota move status	--state-dir	once	folders	Folder for the run journals
O	kquota move status	--quiet	once	flag	Print only errors and other messages that need action, on stderr
O	kquota move status	--timeout	once	free	Stop the command after this time, for example 2m, with exit code 75
O	kquota move status	--textfile	once	files	Also write metrics of the cluster for node exporter'\''s textfile collector
O	kquota move status	--output	once	text|json	Format of stdout
O	kquota move status	--help	once	flag	Show this message and exit
C	kquota move watch	Show bytes, throughput, lag and time left of running moves, and why a move makes no progress
O	kquota move watch	--bootstrap-server	once	free	Connect through these brokers
O	kquota move watch	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move watch	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move watch	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move watch	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move watch	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move watch	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
A	kquota move watch	free
O	kquota move watch	--run	once	free	Watch the moves of this open run
O	kquota move watch	--interval	once	free	Time between two readings, at least 1s
O	kquota move watch	--once	once	flag	Read the cluster once
O	kquota move watch	--state-dir	once	folders	Folder for the run journals
O	kquota move watch	--output	once	text|json	Format of stdout
O	kquota move watch	--help	once	flag	Show this message and exit
C	kquota move adjust	Pause a move, or change its throttle: to a rate, for a deadline, by time of day, or to protect clients
O	kquota move adjust	--bootstrap-server	once	free	Connect through these brokers
O	kquota move adjust	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move adjust	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move adjust	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move adjust	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move adjust	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move adjust	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
A	kquota move adjust	free
O	kquota move adjust	--run	once	free	Id of the run, as `kquota move status` shows it
O	kquota move adjust	--reassignment-json-file	once	files	Select the open run of this plan
O	kquota move adjust	--broker	many	brokers,	Set RATE only on these brokers
O	kquota move adjust	--leader	once	flag	Limit only the traffic that leaders send
O	kquota move adjust	--follower	once	flag	Limit only the traffic that followers receive
O	kquota move adjust	--even-finish	once	flag	Set RATE on the destination that needs the longest time, and a lower follower rate on each other destination, so that all finish at the same time
O	kquota move adjust	--deadline	once	free	Change the throttle so that the move ends after this duration (for example 2h) or at this time (for example 2026-11-24T06:00:00+01:00)
O	kquota move adjust	--min-rate	once	free	With --deadline or --protect: the lowest throttle
O	kquota move adjust	--max-rate	once	free	With --deadline or --protect: the highest throttle
O	kquota move adjust	--between	once	free	Throttles by the local time of this host, for example 22:00-06:00=200MB/s,else=40MB/s
O	kquota move adjust	--protect	once	flag	Raise the throttle while kquota'\''s own writes to a scratch topic are fast
O	kquota move adjust	--max-latency	once	free	With --protect: the latency above which a write is slow, for example 20ms
O	kquota move adjust	--metrics	once	free	With --protect: also react to the produce times and request throttle times that these Prometheus JMX exporters of the brokers report
O	kquota move adjust	--interval	once	free	Time between two readings, at least 1s
O	kquota move adjust	--pause	once	flag	Slow the copies as far as Kafka allows, until --continue or a new rate
O	kquota move adjust	--continue	once	flag	End the pause and restore the previous throttle
O	kquota move adjust	--force	once	flag	Set the rate even if copies can never catch up under it
O	kquota move adjust	--reason	once	free	Reason that colleagues see
O	kquota move adjust	--yes	once	flag	Do not ask for confirmation
O	kquota move adjust	--state-dir	once	folders	Folder for the run journals
O	kquota move adjust	--output	once	text|json	Format of stdout
O	kquota move adjust	--help	once	flag	Show this message and exit
C	kquota move report	Show how a run went: its expected and actual time, and its throughput
O	kquota move report	--bootstrap-server	once	free	Connect through these brokers
O	kquota move report	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move report	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move report	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move report	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move report	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move report	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
A	kquota move report	free
O	kquota move report	--report	once	files	Also write the report of RUN as an HTML page with plots
O	kquota move report	--state-dir	once	folders	Folder for the run journals
O	kquota move report	--output	once	text|json|tsv	Format of stdout
O	kquota move report	--help	once	flag	Show this message and exit
C	kquota move resume	Continue interrupted runs from where they stopped: all open runs, or the one that you name
O	kquota move resume	--bootstrap-server	once	free	Connect through these brokers
O	kquota move resume	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota move resume	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move resume	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move resume	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move resume	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move resume	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move resume	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota move resume	--run	once	free	Id of the run, as `kquota move status` shows it
O	kquota move resume	--reassignment-json-file	once	files	Select the open run of this plan
O	kquota move resume	--state-dir	once	folders	Folder for the run journals
O	kquota move resume	--dry-run	once	flag	Print the changes, without writing them
O	kquota move resume	--force	once	flag	Continue even if too few replicas stay in sync or partitions outside the plan are unhealthy, and override moves that others started
O	kquota move resume	--gone	many	brokers,	Brokers that will never come back
O	kquota move resume	--take-over	once	flag	Take the lock from a command on another host, even if it may still be running
O	kquota move resume	--yes	once	flag	Do not ask for confirmation
O	kquota move resume	--output	once	text|json	Format of stdout
O	kquota move resume	--quiet	once	flag	Print only errors and other messages that need action, on stderr
O	kquota move resume	--timeout	once	free	Stop the command after this time, for example 2m, with exit code 75
O	kquota move resume	--textfile	once	files	Also write metrics of the cluster for node exporter'\''s textfile collector
O	kquota move resume	--help	once	flag	Show this message and exit
C	kquota move abort	Undo a run: cancel its moves, copy moved replicas back, and restore the throttle from before the run
O	kquota move abort	--bootstrap-server	once	free	Connect through these brokers
O	kquota move abort	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota move abort	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota move abort	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota move abort	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota move abort	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota move abort	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota move abort	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota move abort	--run	once	free	Id of the run, as `kquota move status` shows it
O	kquota move abort	--reassignment-json-file	once	files	Select the open run of this plan
O	kquota move abort	--state-dir	once	folders	Folder for the run journals
O	kquota move abort	--dry-run	once	flag	Print the changes, without writing them
O	kquota move abort	--force	once	flag	Undo the run even if too few replicas stay in sync, and override moves that others started
O	kquota move abort	--gone	many	brokers,	Brokers that will never come back
O	kquota move abort	--take-over	once	flag	Take the lock from a command on another host, even if it may still be running
O	kquota move abort	--yes	once	flag	Do not ask for confirmation
O	kquota move abort	--output	once	text|json	Format of stdout
O	kquota move abort	--elect-leaders	once	flag	If all replicas are already back, elect the preferred leaders of the run'\''s partitions, in batches of 50
O	kquota move abort	--help	once	flag	Show this message and exit
C	kquota throttle	Show, set, restore and clean up replication throttles
O	kquota throttle	--help	once	flag	Show this message and exit
C	kquota throttle show	Show throttled brokers and topics, the runs that set the throttles, and the throughput
O	kquota throttle show	--bootstrap-server	once	free	Connect through these brokers
O	kquota throttle show	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota throttle show	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota throttle show	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota throttle show	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota throttle show	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota throttle show	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota throttle show	--topic	many	topics,	Show only these topics
O	kquota throttle show	--broker	many	brokers,	Show only these brokers, by id
O	kquota throttle show	--sample	once	free	Time to measure throughput
O	kquota throttle show	--no-sample	once	flag	The same as --sample 0
O	kquota throttle show	--state-dir	once	folders	Folder for the run journals
O	kquota throttle show	--output	once	text|json|tsv	Format of stdout
O	kquota throttle show	--help	once	flag	Show this message and exit
C	kquota throttle set	Throttle topics and brokers, a returning broker or an open run, and record the previous values
O	kquota throttle set	--bootstrap-server	once	free	Connect through these brokers
O	kquota throttle set	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota throttle set	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota throttle set	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota throttle set	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota throttle set	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota throttle set	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota throttle set	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota throttle set	--throttle	once	free	Throttle rate of each broker, for example 50MB/s
O	kquota throttle set	--topic	many	topics,	Throttle every replica of these topics
O	kquota throttle set	--all-topics	once	flag	Throttle every replica of every topic
O	kquota throttle set	--broker	many	brokers,	Set the rate on these brokers
O	kquota throttle set	--all-brokers	once	flag	Set the rate on every broker
O	kquota throttle set	--leader	once	flag	Limit only the traffic that leaders send
O	kquota throttle set	--follower	once	flag	Limit only the traffic that followers receive
O	kquota throttle set	--recovering	once	brokers	Throttle only the replicas of this broker that are out of sync
O	kquota throttle set	--once	once	flag	With --recovering: check only once
O	kquota throttle set	--run	once	free	Change the rate of this open run
O	kquota throttle set	--reassignment-json-file	once	files	Change the rate of the open run of this plan
O	kquota throttle set	--sample	once	free	Time to measure the share of the rate that in-sync followers use
O	kquota throttle set	--force	once	flag	Set the rate even if copies can never catch up under it
O	kquota throttle set	--reason	once	free	Reason that colleagues see
O	kquota throttle set	--yes	once	flag	Do not ask for confirmation
O	kquota throttle set	--dry-run	once	flag	Print the changes, without writing them
O	kquota throttle set	--state-dir	once	folders	Folder for the run journals
O	kquota throttle set	--output	once	text|json	Format of stdout
O	kquota throttle set	--help	once	flag	Show this message and exit
C	kquota throttle clear	Restore the exact previous values of settings that `throttle set` changed, or remove every throttle
O	kquota throttle clear	--bootstrap-server	once	free	Connect through these brokers
O	kquota throttle clear	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota throttle clear	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota throttle clear	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota throttle clear	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota throttle clear	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota throttle clear	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota throttle clear	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota throttle clear	--run	once	free	Restore only the settings of this run
O	kquota throttle clear	--all	once	flag	Remove every replication throttle of the cluster, including those of other tools and users
O	kquota throttle clear	--gone	many	brokers,	Brokers that will never come back
O	kquota throttle clear	--yes	once	flag	Do not ask for confirmation
O	kquota throttle clear	--dry-run	once	flag	Print the changes, without writing them
O	kquota throttle clear	--state-dir	once	folders	Folder for the run journals
O	kquota throttle clear	--output	once	text|json	Format of stdout
O	kquota throttle clear	--help	once	flag	Show this message and exit
C	kquota throttle doctor	Find replication throttles that are left over, have no effect or contradict each other
O	kquota throttle doctor	--bootstrap-server	once	free	Connect through these brokers
O	kquota throttle doctor	--bootstrap-controller	once	free	Connect through these KRaft controllers, which also accept configs of dead brokers
O	kquota throttle doctor	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota throttle doctor	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota throttle doctor	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota throttle doctor	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota throttle doctor	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota throttle doctor	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota throttle doctor	--fix	once	flag	Remove throttles that no run holds and no move can use
O	kquota throttle doctor	--older-than	once	free	With --fix: remove only leftover throttles that doctor first found at least this long ago (for example 1h) and has found in every check since
O	kquota throttle doctor	--yes	once	flag	Do not ask for confirmation
O	kquota throttle doctor	--dry-run	once	flag	Print the changes, without writing them
O	kquota throttle doctor	--state-dir	once	folders	Folder for the run journals
O	kquota throttle doctor	--quiet	once	flag	Print only errors and other messages that need action, on stderr
O	kquota throttle doctor	--timeout	once	free	Stop the command after this time, for example 2m, with exit code 75
O	kquota throttle doctor	--textfile	once	files	Also write metrics of the cluster for node exporter'\''s textfile collector
O	kquota throttle doctor	--output	once	text|json|tsv	Format of stdout
O	kquota throttle doctor	--help	once	flag	Show this message and exit
C	kquota quota	Manage a cluster'\''s quotas as one document, explain which quota limits a client, and test quotas under load
O	kquota quota	--help	once	flag	Show this message and exit
C	kquota quota export	Print all client quotas of the cluster as one document, in YAML or JSON
O	kquota quota export	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota export	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota export	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota export	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota export	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota export	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota quota export	--replication-throttles	once	flag	Also print the replication throttles of brokers and topics
O	kquota quota export	--format	once	kquota|strimzi|terraform|rpk	Format of the document: kquota'\''s own, KafkaUser resources of Strimzi, resources of the Terraform provider Mongey/kafka, or the YAML of `rpk cluster quotas`
O	kquota quota export	--output	once	text|json	Format of stdout
O	kquota quota export	--help	once	flag	Show this message and exit
C	kquota quota diff	Show what `apply` would change, key by key, and the hash that identifies this change
O	kquota quota diff	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota diff	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota diff	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota diff	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota diff	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota diff	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
A	kquota quota diff	files
O	kquota quota diff	--prune	once	flag	Also remove the limits of entities that `owns:` covers, except those that the document names or `protect:` covers
O	kquota quota diff	--format	once	kquota|strimzi|rpk	Format of FILE, as for `quota export`
O	kquota quota diff	--output	once	text|json|tsv	Format of stdout
O	kquota quota diff	--help	once	flag	Show this message and exit
C	kquota quota apply	Change the quotas of the cluster to match the document
O	kquota quota apply	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota apply	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota apply	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota apply	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota apply	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota apply	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
A	kquota quota apply	files
O	kquota quota apply	--prune	once	flag	Also remove the limits of entities that `owns:` covers, except those that the document names or `protect:` covers
O	kquota quota apply	--format	once	kquota|strimzi|rpk	Format of FILE, as for `quota export`
O	kquota quota apply	--yes	once	flag	Do not ask for confirmation
O	kquota quota apply	--change	once	free	Apply without confirmation, and only if `quota diff` shows this hash for the change
O	kquota quota apply	--dry-run	once	flag	Print the changes, without sending them
O	kquota quota apply	--output	once	text|json	Format of stdout
O	kquota quota apply	--help	once	flag	Show this message and exit
C	kquota quota explain	Explain which quota limits a client and why, which clients share the quota, and how much it allows
O	kquota quota explain	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota explain	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota explain	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota explain	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota explain	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota explain	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota quota explain	--user	once	free	User of the client
O	kquota quota explain	--client-id,--client	once	free	Client-id, '\'''\'' for none
O	kquota quota explain	--ip	once	free	IP address that the client connects from
O	kquota quota explain	--all	once	flag	Check all quotas for mistakes and for limits without effect
O	kquota quota explain	--output	once	text|json|tsv	Format of stdout
O	kquota quota explain	--help	once	flag	Show this message and exit
C	kquota quota top	Show the clients that are nearest to their quotas, from the metrics of the brokers
O	kquota quota top	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota top	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota top	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota top	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota top	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota top	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota quota top	--metrics	once	free	Prometheus JMX exporters of the brokers, separated by commas
O	kquota quota top	--prometheus	once	free	Prometheus server that scrapes the exporters, with the labels of this cluster as parameters, for example http://prometheus:9090?job=kafka
O	kquota quota top	--snapshot	once	folders	Also add each reading to the usage snapshots in DIR
O	kquota quota top	--interval	once	free	Time between two readings, at least 1s
O	kquota quota top	--once	once	flag	Print one reading and exit, even on a terminal
O	kquota quota top	--limited	once	flag	Show only clients that a quota limits
O	kquota quota top	--lines	once	free	Largest number of rows in the table, one for each client and key
O	kquota quota top	--output	once	text|json|tsv	Format of stdout
O	kquota quota top	--help	once	flag	Show this message and exit
C	kquota quota advise	Propose a quota for each client from its measured use, as a document for `quota diff`, and change no quota
O	kquota quota advise	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota advise	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota quota advise	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota advise	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota advise	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota quota advise	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota quota advise	--usage	many	folders	Folder with usage snapshots of `quota top`
O	kquota quota advise	--prometheus	once	free	Prometheus server that scrapes the exporters, with the labels of this cluster as parameters, for example http://prometheus:9090?job=kafka
O	kquota quota advise	--trace	many	files	File or glob of requests, in the format of `quota simulate`
O	kquota quota advise	--window	once	free	Time span of the readings to use, up to the newest one
O	kquota quota advise	--step	once	free	Time between two readings from --prometheus
O	kquota quota advise	--compact	once	flag	Also compact the snapshots into Parquet, with one row per client, key, broker and day
O	kquota quota advise	--percentile	once	free	Percentage of time for which the use must stay below the limit, before head room is added
O	kquota quota advise	--head-room	once	free	Percentage to add to the measured use, for growth
O	kquota quota advise	--key	many	free	Key to limit
O	kquota quota advise	--network	once	free	Network bandwidth of a broker in each direction, for example 1.25GB/s
O	kquota quota advise	--brokers	once	free	Future number of brokers
O	kquota quota advise	--spark-master	once	free	Spark cluster that runs the job: spark://HOST:PORT, yarn, k8s://URL, local[N]
O	kquota quota advise	--spark-remote	once	free	Spark Connect server that runs the job
O	kquota quota advise	--conf	many	free	Spark setting
O	kquota quota advise	--debug	once	flag	Show the traceback of an error, including Spark'\''s frames
O	kquota quota advise	--output	once	text|json|tsv	Format of stdout
O	kquota quota advise	--help	once	flag	Show this message and exit
C	kquota quota simulate	Calculate the effect of quotas on a load, request by request, like a broker of Kafka 3.9 or newer
O	kquota quota simulate	--controller-mutation-rate	once	free	Partitions created or deleted per second in the whole cluster (KIP-599)
O	kquota quota simulate	--producer-byte-rate	once	free	Byte rate of a producer on each broker, for example 10MB/s
O	kquota quota simulate	--consumer-byte-rate	once	free	Byte rate of a consumer on each broker, for example 10MB/s
O	kquota quota simulate	--request-percentage	once	free	Thread time that a client may use on each broker, in percent of one thread (KIP-124)
O	kquota quota simulate	--window-num	once	free	Samples in a quota window: the brokers'\'' quota.window.num and controller.quota.window.num
O	kquota quota simulate	--topics	once	free	Number of topics that are created, grown or deleted
O	kquota quota simulate	--partitions	once	free	Partitions that each topic gains or loses
O	kquota quota simulate	--from-file	once	files	File with one topic per line: NAME
O	kquota quota simulate	--within	once	free	Find the smallest mutation rate at which the load takes at most this time, for example 10m
O	kquota quota simulate	--model	once	shipped|draft-even|draft-front	Use the arithmetic of Kafka'\''s releases, or of a draft of KIP-599
O	kquota quota simulate	--permissive	once	flag	Simulate a client that brokers delay because they cannot reject it, for example librdkafka
O	kquota quota simulate	--per-request	once	free	Topics in each request
O	kquota quota simulate	--load	once	free	Rate at which the client would send or fetch without a quota, for example 25MB/s
O	kquota quota simulate	--request-size	once	free	Size of each request
O	kquota quota simulate	--for	once	free	Duration of the load
O	kquota quota simulate	--thread-time	once	free	Thread time that each request costs a broker, for example 2ms
O	kquota quota simulate	--trace	many	files	File or glob of requests, as CSV or JSON lines
O	kquota quota simulate	--closed-loop	once	flag	With --load or --trace: the client waits for each answer, so each delay also delays later requests
O	kquota quota simulate	--spark-master	once	free	Spark cluster that runs the job: spark://HOST:PORT, yarn, k8s://URL, local[N]
O	kquota quota simulate	--spark-remote	once	free	Spark Connect server that runs the job
O	kquota quota simulate	--conf	many	free	Spark setting
O	kquota quota simulate	--debug	once	flag	Show the traceback of an error, including Spark'\''s frames
O	kquota quota simulate	--output	once	text|json	Format of stdout
O	kquota quota simulate	--help	once	flag	Show this message and exit
C	kquota quota probe	Load a topic with a real client for some seconds, and compare the throughput of the client with its quota
O	kquota quota probe	--bootstrap-server	once	free	Connect through these brokers
O	kquota quota probe	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota quota probe	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota quota probe	--produce	once	free	Write at this total rate to all brokers, for example 20MB/s
O	kquota quota probe	--consume	once	flag	Read faster than the quota allows
O	kquota quota probe	--requests	once	flag	Send small requests as fast as possible
O	kquota quota probe	--create-topics	once	flag	Create and delete topics faster than the quota allows
O	kquota quota probe	--find-limit	once	flag	Measure how many mutations per second the controller sustains, and suggest a controller_mutation_rate (KIP-599)
O	kquota quota probe	--client-command	once	free	Start your own client through a proxy, and report whether it honors throttle times (KIP-219)
O	kquota quota probe	--clean-up	once	flag	Only remove the topics of killed probes
O	kquota quota probe	--user	once	free	User of the client
O	kquota quota probe	--client-id,--client	once	free	Client-id of the client
O	kquota quota probe	--client-config	once	files	Java properties with the client'\''s login, if it differs from --command-config
O	kquota quota probe	--seconds	once	free	Time to measure
O	kquota quota probe	--broker-list	once	brokers,	Load only these brokers
O	kquota quota probe	--most-bytes	once	free	Largest amount to write, in total over all brokers
O	kquota quota probe	--most-partitions	once	free	Largest number of the probe'\''s own partitions that exist at the same time
O	kquota quota probe	--tenants	once	free	Divide the suggested rate by this number of tenants
O	kquota quota probe	--overcommit	once	free	Multiply each tenant'\''s rate by this factor, because tenants do not all work at the same time
O	kquota quota probe	--yes	once	flag	Do not ask for confirmation
O	kquota quota probe	--dry-run	once	flag	Print the plan, and change nothing
O	kquota quota probe	--output	once	text|json	Format of stdout
O	kquota quota probe	--help	once	flag	Show this message and exit
C	kquota record	Share one record of runs, so that every host can see and resume all runs and restore their throttles
O	kquota record	--help	once	flag	Show this message and exit
C	kquota record share	Create the topic that records the runs of all hosts, or check an existing topic
O	kquota record share	--bootstrap-server	once	free	Connect through these brokers
O	kquota record share	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota record share	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota record share	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota record share	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota record share	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota record share	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota record share	--yes	once	flag	Do not ask for confirmation
O	kquota record share	--dry-run	once	flag	Print the changes, without writing them
O	kquota record share	--state-dir	once	folders	Folder for the run journals
O	kquota record share	--output	once	text|json	Format of stdout
O	kquota record share	--help	once	flag	Show this message and exit
C	kquota record status	Show the topic that records the runs of all hosts, its problems, and the command that is writing
O	kquota record status	--bootstrap-server	once	free	Connect through these brokers
O	kquota record status	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota record status	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota record status	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota record status	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota record status	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota record status	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota record status	--state-dir	once	folders	Folder for the run journals
O	kquota record status	--output	once	text|json	Format of stdout
O	kquota record status	--help	once	flag	Show this message and exit
C	kquota record unshare	Delete the topic that records the runs of all hosts
O	kquota record unshare	--bootstrap-server	once	free	Connect through these brokers
O	kquota record unshare	--zookeeper	once	free	Connect through the ZooKeeper of the cluster
O	kquota record unshare	--cluster	once	clusters	Connect to this cluster of ~/.config/kquota/config.toml
O	kquota record unshare	--command-config	once	files	Java properties with the client'\''s security settings
O	kquota record unshare	--zk-tls-config-file	once	files	Java properties with ZooKeeper'\''s TLS settings
O	kquota record unshare	--zk-sasl-config-file	once	files	JAAS file with ZooKeeper'\''s login
O	kquota record unshare	--record	once	topics	Topic of the shared record, or `none` to use only the journals of this host
O	kquota record unshare	--yes	once	flag	Do not ask for confirmation
O	kquota record unshare	--dry-run	once	flag	Print the changes, without writing them
O	kquota record unshare	--state-dir	once	folders	Folder for the run journals
O	kquota record unshare	--output	once	text|json	Format of stdout
O	kquota record unshare	--help	once	flag	Show this message and exit
C	kquota sandbox	Run a real ZooKeeper and real Kafka on this machine
O	kquota sandbox	--help	once	flag	Show this message and exit
C	kquota sandbox up	Start real servers on the loopback address
A	kquota sandbox up	free
O	kquota sandbox up	--kafka	once	releases	Kafka release: 4.3.1 (KRaft), 3.9.1 or 2.8.2 (both on ZooKeeper)
O	kquota sandbox up	--brokers	once	free	Number of brokers, 1 to 9
O	kquota sandbox up	--zookeeper-only	once	flag	Start only ZooKeeper, without a download
O	kquota sandbox up	--tiered	once	flag	Configure remote storage in a folder, for tiered topics (Kafka 4.3.1 only)
O	kquota sandbox up	--metrics	once	flag	Run the Prometheus JMX exporter in each broker, for `kquota quota top`
O	kquota sandbox up	--property	many	free	Config to set on every broker
O	kquota sandbox up	--output	once	text|json	Format of stdout
O	kquota sandbox up	--help	once	flag	Show this message and exit
C	kquota sandbox status	Show which sandboxes are running, and their addresses
A	kquota sandbox status	free
O	kquota sandbox status	--output	once	text|json	Format of stdout
O	kquota sandbox status	--help	once	flag	Show this message and exit
C	kquota sandbox env	Print environment variables that make kquota use a sandbox
A	kquota sandbox env	free
O	kquota sandbox env	--help	once	flag	Show this message and exit
C	kquota sandbox down	Stop the servers of a sandbox and remove its data, also after a crash
A	kquota sandbox down	free
O	kquota sandbox down	--all	once	flag	Stop all sandboxes
O	kquota sandbox down	--help	once	flag	Show this message and exit
C	kquota sandbox demo	Show kquota on a new sandbox: throttle a client, estimate and run a move, and restore the throttle
O	kquota sandbox demo	--help	once	flag	Show this message and exit
V	entity-types	users
V	entity-types	clients
V	entity-types	ips
V	entity-types	topics
V	entity-types	brokers
V	entity-types	client-metrics
V	entity-types	groups
V	entity-types	broker-loggers
V	releases	4.3.1
V	releases	3.9.1
V	releases	2.8.2
V	keys of users	producer_byte_rate
V	keys of users	consumer_byte_rate
V	keys of users	request_percentage
V	keys of users	controller_mutation_rate
V	keys of clients	producer_byte_rate
V	keys of clients	consumer_byte_rate
V	keys of clients	request_percentage
V	keys of clients	controller_mutation_rate
V	keys of ips	connection_creation_rate
V	keys of topics	cleanup.policy
V	keys of topics	compression.gzip.level
V	keys of topics	compression.lz4.level
V	keys of topics	compression.type
V	keys of topics	compression.zstd.level
V	keys of topics	delete.retention.ms
V	keys of topics	file.delete.delay.ms
V	keys of topics	flush.messages
V	keys of topics	flush.ms
V	keys of topics	follower.replication.throttled.replicas
V	keys of topics	index.interval.bytes
V	keys of topics	leader.replication.throttled.replicas
V	keys of topics	local.retention.bytes
V	keys of topics	local.retention.ms
V	keys of topics	max.compaction.lag.ms
V	keys of topics	max.message.bytes
V	keys of topics	message.timestamp.after.max.ms
V	keys of topics	message.timestamp.before.max.ms
V	keys of topics	message.timestamp.type
V	keys of topics	min.cleanable.dirty.ratio
V	keys of topics	min.compaction.lag.ms
V	keys of topics	min.insync.replicas
V	keys of topics	preallocate
V	keys of topics	remote.log.copy.disable
V	keys of topics	remote.log.delete.on.disable
V	keys of topics	remote.storage.enable
V	keys of topics	retention.bytes
V	keys of topics	retention.ms
V	keys of topics	segment.bytes
V	keys of topics	segment.index.bytes
V	keys of topics	segment.jitter.ms
V	keys of topics	segment.ms
V	keys of topics	unclean.leader.election.enable
V	keys of brokers	follower.replication.throttled.rate
V	keys of brokers	leader.replication.throttled.rate
V	keys of brokers	log.cleaner.io.max.bytes.per.second
V	keys of brokers	max.connection.creation.rate
V	keys of brokers	max.connections
V	keys of brokers	max.connections.per.ip
V	keys of brokers	num.io.threads
V	keys of brokers	num.network.threads
V	keys of brokers	num.replica.fetchers
V	keys of brokers	remote.log.manager.copy.max.bytes.per.second
V	keys of brokers	remote.log.manager.fetch.max.bytes.per.second
V	keys of brokers	replica.alter.log.dirs.io.max.bytes.per.second
V	keys of client-metrics	interval.ms
V	keys of client-metrics	match
V	keys of client-metrics	metrics
V	keys of groups	consumer.assignment.interval.ms
V	keys of groups	consumer.heartbeat.interval.ms
V	keys of groups	consumer.session.timeout.ms
V	keys of groups	share.assignment.interval.ms
V	keys of groups	share.auto.offset.reset
V	keys of groups	share.delivery.count.limit
V	keys of groups	share.heartbeat.interval.ms
V	keys of groups	share.isolation.level
V	keys of groups	share.partition.max.record.locks
V	keys of groups	share.record.lock.duration.ms
V	keys of groups	share.renew.acknowledge.enable
V	keys of groups	share.session.timeout.ms
V	keys of groups	streams.assignment.interval.ms
V	keys of groups	streams.heartbeat.interval.ms
V	keys of groups	streams.initial.rebalance.delay.ms
V	keys of groups	streams.num.standby.replicas
V	keys of groups	streams.session.timeout.ms
V	keys of broker-loggers	root
V	text|json|tsv	text
V	text|json|tsv	json
V	text|json|tsv	tsv
V	preferred|unclean	preferred
V	preferred|unclean	unclean
V	text|json	text
V	text|json	json
V	kquota|strimzi|terraform|rpk	kquota
V	kquota|strimzi|terraform|rpk	strimzi
V	kquota|strimzi|terraform|rpk	terraform
V	kquota|strimzi|terraform|rpk	rpk
V	kquota|strimzi|rpk	kquota
V	kquota|strimzi|rpk	strimzi
V	kquota|strimzi|rpk	rpk
V	shipped|draft-even|draft-front	shipped
V	shipped|draft-even|draft-front	draft-even
V	shipped|draft-even|draft-front	draft-front
'

    # bash cuts words at = and :, which are parts of ours.
    local line=${COMP_LINE:0:COMP_POINT} words=() word blank i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${line%%[![:blank:]]*}
        line=${line#"$blank"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line
        line=${line#*"$word"}
        if [[ $blank || $i == 0 ]]; then words+=("$word"); else words[${#words[@]} - 1]+=$word; fi
    done

    # What readline replaces is the end of the word, $2, and so what is before it must not stand in an answer.
    local stays=${words[${#words[@]} - 1]%"$2"}
    stays=${stays//[\"\'\\]/}

    # An older bash cannot leave out the space after one word: there it is ours to add.
    local mode= keep= rest new=
    if type compopt >/dev/null; then new=yes; fi
    while IFS=$'\t' read -r word rest; do
        if [[ ! $mode ]]; then
            mode=$word keep=$rest
            continue
        fi
        word=$keep$word
        word=${word#"$stays"}
        if [[ $word == *= ]]; then compopt -o nospace; elif [[ ! $new ]]; then word+=' '; fi
        COMPREPLY+=("$word")
    done < <(LC_ALL=C command awk "$program" "$table" typed "${words[@]}")

    # Where there is no answer, bash completes files by itself (-o default): its own way with their names is the best.
    [[ $new ]] || return 0
    case $mode in
        folders) compopt +o default -o dirnames ;;
        files) ;;
        *) compopt +o default ;;
    esac
} 2>/dev/null

if type compopt >/dev/null 2>&1; then
    complete -o default -F _kquota kquota
else
    complete -o default -o nospace -F _kquota kquota
fi
