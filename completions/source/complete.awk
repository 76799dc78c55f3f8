# What can stand at the cursor: one program in POSIX awk, the same for bash, zsh and fish.
#
#   awk PROGRAM TABLE read|typed COMMAND WORD... CURRENT
#
# The words are those before the cursor, as the shell would read them or as they are typed, quotes and all. The first
# line of the answer is `words`, `files` or `folders`, a tab, and the part of CURRENT that stays; each other line is a
# candidate for what comes after it, a tab, and its description. Who gives words as they are typed has no matching of
# its own: only what CURRENT is the beginning of is told. kquota itself is started for a cluster's topics and brokers
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

# A word that the cursor is past: an option's value, an option, a command or an argument.
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
