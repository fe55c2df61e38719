"""A complete runner for Interlude in the standard library. It writes each record to disk before doing anything else
with it. One file is both outbox and state; to keep the code small, nothing is ever deleted from it.
Check: interlude conformance runner -- python3 docs/runners/runner.py. The protocol: lib/protocol/PROTOCOL.md."""
import http.client, json, os, re, shlex, subprocess, threading, time, urllib.parse, uuid

URL, TOKEN = urllib.parse.urlsplit(os.environ["INTERLUDE_URL"]), os.environ["INTERLUDE_TOKEN"]
AGENT, SESSION, RUNNER = "python", "python-session", {"runner": uuid.uuid4().hex, "startedAt": time.time_ns() // 10**6}
UNSUPPORTED = dict.fromkeys(
    "interrupt task.stop task.wake wake-rule.set permission.decision question.answer log-level.set".split(),
    "this small runner supports messages only")
NETWORK_ERRORS = (OSError, ValueError, http.client.HTTPException)

# Secrets in log lines, by kind; group 1, if any, stays visible. Transcripts are sent unredacted. This covers the most
# common forms of docs/redaction.md. It misses tokens of other services, password hashes, arguments of commands
# (mysql -p…), passwords in tables, forms and sentences, and whatever is encoded or continues on another log line.
SECRETS = {kind: re.compile(pattern) for kind, pattern in {
    "own-token": re.escape(TOKEN),
    "interlude-token": r"\bil[tsec]_[\w-]{32,}",
    "api-key": r"\bsk-[\w-]{16,}",  # Anthropic, OpenAI, OpenRouter and others
    "github-token": r"\b(?:gh[opusr]_|github_pat_)\w{20,}",
    "gitlab-token": r"\bgl(?:pat|dt|rt|cbt|ptt)-[\w.-]{20,}",
    "slack-token": r"\b(?:xox[a-z]|xapp)-[\w-]{10,}",
    "stripe-key": r"\b[sr]k_(?:live|test)_\w{16,}",
    "registry-token": r"\b(?:npm_\w{30,}|pypi-Ag[\w-]{40,}|dckr_[op]at_[\w-]{20,}|hf_\w{30,})",
    "aws-access-key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "google-key": r"\b(?:AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})",
    "jwt": r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    "private-key": r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)",
    "url-password": r"(://[^\s/:@]*:)[^\s/@\[]+(?=@)",
    "authorization": r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    "named-secret": r"(?i)((?:passw(?:or)?d|passphrase|secret|token|credentials?|(?:api|access|private|secret)[_-]?key)"
                    r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',;\[]{6,}",
}.items()}

def redact(text):  # text, number of secrets
    count = 0
    for kind, pattern in SECRETS.items():
        text, found = pattern.subn(lambda match: f"{(match[1] if match.lastindex else '')}[redacted: {kind}]", text)
        count += found
    return text, count

file = open(os.path.join(os.environ["INTERLUDE_DATA_DIR"], "outbox.jsonl"), "a+b", buffering=0)
lines, _, torn = (file.seek(0) or file.read()).rpartition(b"\n")  # a line that a kill cut short was never sent
file.truncate(file.tell() - len(torn))
records, lock, turn = [json.loads(line) for line in lines.splitlines()], threading.Lock(), None
delivered = {id for record in records for id in record["begins"]}  # a turn has started with these messages
pending = {}  # messages that the agent has, before a turn starts with them

def put(kind, value, message_ids=()):  # its number is final
    with lock:
        about = {"agentId": AGENT, "sessionId": SESSION, "occurredAt": time.time_ns() // 10**6}
        records.append({"seq": len(records) + 1, "kind": kind, kind: value, **about, "begins": list(message_ids)})
        file.write(json.dumps(records[-1]).encode() + b"\n")

def change_epoch(epoch):  # the first record's time is the epoch of the outbox
    global file
    with lock:
        records[0]["occurredAt"] = epoch
        with open(f"{file.name}.new", "wb") as new: new.writelines(json.dumps(one).encode() + b"\n" for one in records)
        os.replace(new.name, file.name)
        file = open(file.name, "ab", buffering=0)

def request(method, path, body=None):
    connect = http.client.HTTPSConnection if URL.scheme == "https" else http.client.HTTPConnection
    link = connect(URL.netloc, timeout=45)
    link.request(method, f"/api/v1{path}", body and json.dumps(body), {"authorization": f"Bearer {TOKEN}"})
    return link.getresponse()

def post(path, body):  # status (0: none), body, seconds until the next try
    try:
        result = json.load(answer := request("POST", path, body))
        return answer.status, result.get("error", result), int(answer.headers.get("retry-after", 1))
    except NETWORK_ERRORS: return 0, {}, 1

def send():  # one request at a time; repeats unacknowledged records unchanged, without limit
    sent, most, due = 0, 50, 0
    while True:
        if time.monotonic() > due:  # a status describes one moment: write none while requests fail
            about = {"kind": "trivial", "runner": {"id": RUNNER["runner"], **RUNNER}, "versions": {"protocol": "1"}}
            commands = {"takes": ["message"], "takesNot": UNSUPPORTED}
            put("status", {**about, **commands, "everyMs": 3000, "openTurnId": turn})
            due = time.monotonic() + 1
        batch, producer = records[sent:sent + most], {"id": AGENT, "epoch": records[0]["occurredAt"]}
        status, result, wait = post("/events", {"producer": producer, "records": batch}) if batch else (0, {}, 0.05)
        code = result.get("code")
        if status == 200: sent, most = result["ackedSeq"], min(2 * most, 50)
        elif code == "sequence_gap": sent = result["expectedSeq"] - 1  # the server's database was restored
        elif code == "stale_epoch" or sent > len(records): os._exit(1)  # another outbox has written
        elif code == "epoch_ahead":  # the clock that dated the outbox was ahead: restart at the server's time
            change_epoch(max(result["now"], (result["currentEpoch"] or 0) + 1))
            time.sleep(wait)
        elif status in (400, 413) and len(batch) > 1: most = len(batch) // 2
        elif status in (400, 413):  # permanently rejected: declare the loss under its number
            records[sent] |= {"kind": "lost", batch[0]["kind"]: None, "lost": {"count": 1, "reason": "refused"}}
        else: time.sleep(wait)

def listen():  # after a broken stream, the next one repeats open commands
    while True:
        try:
            for line in request("GET", f"/agents/{AGENT}/commands?{urllib.parse.urlencode(RUNNER)}"):
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "event": event = value
                elif name == "data" and event == "command": execute(**json.loads(value))
                elif name == "data" and event == "fenced": os._exit(1)  # another runner has taken over
        except NETWORK_ERRORS: pass
        time.sleep(1)

def execute(id, type, body, **_):
    if type != "message": acknowledge(id, "failed", UNSUPPORTED.get(type, "this runner does not know this command"))
    elif body.get("attachments"): acknowledge(id, "failed", "this small runner supports no attachments")
    elif id in delivered: acknowledge(id, "delivered")
    elif id not in pending:  # acknowledged once a turn has started with it
        pending[id] = {"type": "message", "id": id, "text": body["text"]}
        print(json.dumps(pending[id]), file=agent.stdin, flush=True)

def acknowledge(id, state, reason=None):
    body = {"state": state, "reason": reason, **RUNNER}
    threading.Thread(target=post, args=[f"/agents/{AGENT}/commands/{id}/ack", body]).start()

def custom(name, **value):
    put("event", {"type": "CUSTOM", "name": name, "value": value})

def start_turn(turn, cause, message_ids=()):
    put("event", {"type": "RUN_STARTED", "runId": turn, "metadata": {"interlude": cause}}, message_ids)
    for id in message_ids: delivered.add(id), pending.pop(id, None), acknowledge(id, "delivered")

env = {name: value for name, value in os.environ.items() if not name.startswith("INTERLUDE_")}
agent = subprocess.Popen(shlex.split(os.environ["CONFORMANCE_AGENT"]), stdin=-1, stdout=-1, encoding="utf-8", env=env)
if records: custom("session:ended", reason="its runner ended")  # which also ends open work
custom("session:started")
for loop in send, listen: threading.Thread(target=loop, daemon=True).start()
for line in agent.stdout:
    match json.loads(line):  # the agent's line → AG-UI
        case {"type": "turn-start", "turn": turn, "messages": ids}:
            start_turn(turn, {"turn": "user", "userMessageIds": ids}, ids)
        case {"type": "turn-start", "turn": turn, "task": task}:
            start_turn(turn, {"turn": "between-run", "trigger": {"kind": "task", "taskIds": [task]}})
        case {"type": "say", "id": id, "text": text}:
            for piece in re.findall(r"(?s).{1,20000}", text):  # each fits into a record
                put("event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "role": "assistant", "delta": piece})
        case {"type": "task-start", "task": task, "description": description}:
            custom("task:started", task_id=task, description=description)
        case {"type": "task-end", "task": task, "status": status, "exitCode": code}:
            custom("task:completed", task_id=task, status=status, exit_code=code)
        case {"type": "log", "level": level, "text": text}:
            text, count = redact(text)
            put("log", {"level": level, "component": "agent", "message": text, "redacted": count})
        case {"type": "turn-end", "status": status, **more}:
            failed = status == "failed" and {"type": "RUN_ERROR", "message": more.get("reason")}
            turn = put("event", {**(failed or {"type": "RUN_FINISHED"}), "runId": turn})
os._exit(1)  # the agent has ended; a supervisor restarts both
