"""A complete runner for Interlude in the standard library. It writes each record to disk before doing anything else
with it. One file is both outbox and state; to keep the code small, nothing is ever deleted from it.
Check: interlude conformance runner -- python3 docs/runners/runner.py. The protocol: lib/protocol/PROTOCOL.md."""
import http.client, json, os, re, shlex, subprocess, threading, time, urllib.parse, uuid

URL, TOKEN = urllib.parse.urlsplit(os.environ["INTERLUDE_URL"]), os.environ["INTERLUDE_TOKEN"]
AGENT, SESSION, ME = "python", "python-session", {"runner": uuid.uuid4().hex, "startedAt": time.time_ns() // 10**6}
NOT_TAKEN = "interrupt task.stop task.wake wake-rule.set permission.decision question.answer log-level.set".split()
TAKES_NOT = dict.fromkeys(NOT_TAKEN, "this small runner takes messages and nothing else")
SECRET = re.compile(re.escape(TOKEN) + r"|\b(?:sk|gh[opsu]|xox[abp])[-_][\w-]{16,}")
TROUBLE = (OSError, ValueError, http.client.HTTPException)

file = open(os.path.join(os.environ["INTERLUDE_DATA_DIR"], "outbox.jsonl"), "a+b", buffering=0)
lines, _, torn = (file.seek(0) or file.read()).rpartition(b"\n")  # a line that a kill cut short was never sent
file.truncate(file.tell() - len(torn))
records, lock, turn, given = [json.loads(line) for line in lines.splitlines()], threading.Lock(), None, {}
begun = {id for record in records for id in record["begins"]}  # messages that a turn has started with

def put(kind, what, begins=()):  # its number is final
    with lock:
        about = {"agentId": AGENT, "sessionId": SESSION, "occurredAt": time.time_ns() // 10**6, "begins": list(begins)}
        records.append({"seq": len(records) + 1, "kind": kind, kind: what, **about})
        file.write(json.dumps(records[-1]).encode() + b"\n")

def redate(epoch):  # the first record's time is the epoch of the outbox
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
        said = json.load(answer := request("POST", path, body))
        return answer.status, said.get("error", said), int(answer.headers.get("retry-after", 1))
    except TROUBLE: return 0, {}, 1

def send():  # one request at a time; repeats unacknowledged records unchanged, without limit
    sent, most, due = 0, 50, 0
    while True:
        if time.monotonic() > due:  # a status describes one moment: write none while requests fail
            runner = {"kind": "trivial", "runner": {"id": ME["runner"], **ME}, "versions": {"protocol": "1"}}
            takes = {"takes": ["message"], "takesNot": TAKES_NOT}
            put("status", {**runner, **takes, "everyMs": 3000, "openTurnId": turn})
            due = time.monotonic() + 1
        batch, producer = records[sent:sent + most], {"id": AGENT, "epoch": records[0]["occurredAt"]}
        status, said, wait = post("/events", {"producer": producer, "records": batch}) if batch else (0, {}, 0.05)
        if status == 200: sent, most = said["ackedSeq"], min(2 * most, 50)
        elif said.get("code") == "sequence_gap": sent = said["expectedSeq"] - 1  # the server's database was restored
        elif said.get("code") == "stale_epoch" or sent > len(records): os._exit(1)  # another outbox has written
        elif said.get("code") == "epoch_ahead":  # the clock that dated the outbox was ahead: restart at the server's time
            redate(max(said["now"], (said["currentEpoch"] or 0) + 1))
            time.sleep(wait)
        elif status in (400, 413) and len(batch) > 1: most = len(batch) // 2
        elif status in (400, 413):  # permanently rejected: declare the loss under its number
            records[sent] |= {"kind": "lost", batch[0]["kind"]: None, "lost": {"count": 1, "reason": "refused"}}
        else: time.sleep(wait)

def listen():  # after a broken stream, the next one repeats open commands
    while True:
        try:
            for line in request("GET", f"/agents/{AGENT}/commands?{urllib.parse.urlencode(ME)}"):
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "event": event = value
                elif name == "data" and event == "command": obey(**json.loads(value))
                elif name == "data" and event == "fenced": os._exit(1)  # another runner has taken over
        except TROUBLE: pass
        time.sleep(1)

def obey(id, type, body, **_):
    if type != "message": acknowledge(id, "failed", TAKES_NOT.get(type, "this runner does not know what that is"))
    elif body.get("attachments"): acknowledge(id, "failed", "this small runner takes no attachments")
    elif id in begun: acknowledge(id, "delivered")
    elif id not in given:  # acknowledged once a turn has started with it
        given[id] = {"type": "message", "id": id, "text": body["text"]}
        print(json.dumps(given[id]), file=agent.stdin, flush=True)

def acknowledge(id, state, reason=None):
    body = {"state": state, "reason": reason, **ME}
    threading.Thread(target=post, args=[f"/agents/{AGENT}/commands/{id}/ack", body]).start()

def custom(name, **value):
    put("event", {"type": "CUSTOM", "name": name, "value": value})

def begin(turn, cause, messages=()):
    put("event", {"type": "RUN_STARTED", "runId": turn, "metadata": {"interlude": cause}}, messages)
    for id in messages: begun.add(id), given.pop(id, None), acknowledge(id, "delivered")

own = {name: value for name, value in os.environ.items() if not name.startswith("INTERLUDE_")}
agent = subprocess.Popen(shlex.split(os.environ["CONFORMANCE_AGENT"]), stdin=-1, stdout=-1, encoding="utf-8", env=own)
if records: custom("session:ended", reason="its runner ended")  # which also ends open work
custom("session:started")
for work in send, listen: threading.Thread(target=work, daemon=True).start()
for line in agent.stdout:
    match json.loads(line):  # the agent's line → AG-UI
        case {"type": "turn-start", "turn": turn, "messages": ids}:
            begin(turn, {"turn": "user", "userMessageIds": ids}, ids)
        case {"type": "turn-start", "turn": turn, "task": task}:
            begin(turn, {"turn": "between-run", "trigger": {"kind": "task", "taskIds": [task]}})
        case {"type": "say", "id": id, "text": text}:
            for piece in re.findall(r"(?s).{1,20000}", text):  # each fits into a record
                put("event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "role": "assistant", "delta": piece})
        case {"type": "task-start", "task": task, "description": description}:
            custom("task:started", task_id=task, description=description)
        case {"type": "task-end", "task": task, "status": status, "exitCode": code}:
            custom("task:completed", task_id=task, status=status, exit_code=code)
        case {"type": "log", "level": level, "text": text}:
            text, count = SECRET.subn("[redacted: secret]", text)
            put("log", {"level": level, "component": "agent", "message": text, "redacted": count})
        case {"type": "turn-end", "status": status, **more}:
            failed = status == "failed" and {"type": "RUN_ERROR", "message": more.get("reason")}
            turn = put("event", {**(failed or {"type": "RUN_FINISHED"}), "runId": turn})
os._exit(1)  # the agent has ended; a supervisor restarts both
