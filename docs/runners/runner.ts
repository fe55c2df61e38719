/**
 * A complete runner for Interlude without packages. It writes each record to disk before doing anything else with it.
 * One file is both outbox and state; to keep the code small, nothing is ever deleted from it.
 * Check: interlude conformance runner -- npx tsx docs/runners/runner.ts. The protocol: lib/protocol/PROTOCOL.md.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

type Fields = Record<string, unknown>;
type Line = { type: string; turn: string; messages?: string[]; task: string; id: string; text: string } & Fields;
const { INTERLUDE_URL = '', INTERLUDE_TOKEN = '', INTERLUDE_DATA_DIR = '.', CONFORMANCE_AGENT = '' } = process.env;
const [agentId, sessionId, me] = ['ts', 'ts-session', { runner: randomUUID(), startedAt: Date.now() }];
const requests = ['interrupt', 'session.end', 'task.stop', 'permission.decision', 'question.answer'];
const unsupported = Object.fromEntries(
  [...requests, 'task.wake', 'wake-rule.set', 'log-level.set'].map((type) => [
    type,
    'this small runner supports messages only',
  ]),
);

/**
 * Secrets in log lines, by kind; group 1, if any, stays visible. Transcripts are sent unredacted. This covers the most
 * common forms of docs/redaction.md. It misses tokens of other services, password hashes, arguments of commands
 * (mysql -p…), passwords in tables, forms and sentences, and whatever is encoded or continues on another log line.
 */
const SECRETS: Record<string, RegExp> = {
  'own-token': new RegExp(INTERLUDE_TOKEN.replace(/\W/g, '\\$&') || '(?!)', 'g'),
  'interlude-token': /\bil[tsec]_[\w-]{32,}/g,
  'api-key': /\bsk-[\w-]{16,}/g, // Anthropic, OpenAI, OpenRouter and others
  'github-token': /\b(?:gh[opusr]_|github_pat_)\w{20,}/g,
  'gitlab-token': /\bgl(?:pat|dt|rt|cbt|ptt)-[\w.-]{20,}/g,
  'slack-token': /\b(?:xox[a-z]|xapp)-[\w-]{10,}/g,
  'stripe-key': /\b[sr]k_(?:live|test)_\w{16,}/g,
  'registry-token': /\b(?:npm_\w{30,}|pypi-Ag[\w-]{40,}|dckr_[op]at_[\w-]{20,}|hf_\w{30,})/g,
  'aws-access-key': /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  'google-key': /\b(?:AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})/g,
  jwt: /\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g,
  'private-key': /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*-----|$)/g,
  'url-password': /(:\/\/[^\s/:@]*:)[^\s/@[]+(?=@)/g,
  authorization: /\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}/gi,
  'named-secret':
    /((?:passw(?:or)?d|passphrase|secret|token|credentials?|(?:api|access|private|secret)[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',;[]{6,}/gi,
};

function redact(text: string): { message: string; redacted: number } {
  let [message, redacted] = [text, 0];
  for (const [kind, pattern] of Object.entries(SECRETS)) {
    message = message.replace(pattern, (_, visible) => {
      redacted += 1;
      return `${typeof visible === 'string' ? visible : ''}[redacted: ${kind}]`;
    });
  }
  return { message, redacted };
}

const file = `${INTERLUDE_DATA_DIR}/outbox.jsonl`;
const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
const whole = text.slice(0, text.lastIndexOf('\n') + 1); // a line that a kill cut short was never sent
if (whole !== text) truncateSync(file, Buffer.byteLength(whole));
const records: Fields[] = whole.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
const delivered = new Set(records.flatMap(({ begins }) => begins as string[])); // messages that a turn has started with
const pending = new Set<string>(); // to this agent, before a turn started with them
let turn: string | null = null;

function put(kind: string, value: Fields, messageIds: string[] = []): void {
  const about = { agentId, sessionId, occurredAt: Date.now(), begins: messageIds };
  records.push({ seq: records.length + 1, kind, [kind]: value, ...about }); // its number is final
  appendFileSync(file, `${JSON.stringify(records.at(-1))}\n`);
}

/** The first record's time is the epoch of the outbox. The clock that set it was ahead of the server's. */
function changeEpoch(epoch: number): void {
  records[0] = { ...records[0], occurredAt: epoch };
  writeFileSync(`${file}.new`, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  renameSync(`${file}.new`, file);
}

const request = (path: string, more: RequestInit = {}) =>
  fetch(`${INTERLUDE_URL}/api/v1${path}`, { headers: { authorization: `Bearer ${INTERLUDE_TOKEN}` }, ...more });

/** @returns status (0: none), body, milliseconds until the next try */
async function post(path: string, body: object): Promise<[number, Fields, number]> {
  try {
    const signal = AbortSignal.timeout(30_000);
    const response = await request(path, { method: 'POST', body: JSON.stringify(body), signal });
    const result = await response.json();
    return [response.status, result.error ?? result, Number(response.headers.get('retry-after') ?? 1) * 1_000];
  } catch {
    return [0, {}, 1_000];
  }
}

/** One request at a time; repeats unacknowledged records unchanged, without limit. */
async function send(): Promise<never> {
  for (let [sent, most, due] = [0, 50, 0]; ; ) {
    if (Date.now() > due) {
      due = Date.now() + 1_000; // a status describes one moment: write none while requests fail
      const about = { kind: 'trivial', runner: { id: me.runner, ...me }, versions: { protocol: '1' }, everyMs: 3_000 };
      put('status', { ...about, openTurnId: turn, takes: ['message'], takesNot: unsupported });
    }
    const batch = records.slice(sent, sent + most);
    const producer = { id: agentId, epoch: records[0]?.occurredAt };
    const [status, result, wait] = batch[0] ? await post('/events', { producer, records: batch }) : [0, {}, 50];
    if (status === 200) [sent, most] = [Number(result.ackedSeq), Math.min(2 * most, 50)];
    else if (result.code === 'sequence_gap')
      sent = Number(result.expectedSeq) - 1; // the server's database was restored
    else if (result.code === 'stale_epoch' || sent > records.length)
      process.exit(1); // another outbox has written
    else if (result.code === 'epoch_ahead') {
      changeEpoch(Math.max(Number(result.now), Number(result.currentEpoch ?? 0) + 1)); // restart at the server's time
      await pause(wait);
    } else if (status !== 400 && status !== 413) await pause(wait);
    else if (batch.length > 1) most = Math.floor(batch.length / 2);
    else
      records[sent] = { ...batch[0], kind: 'lost', [`${batch[0]?.kind}`]: null, lost: { count: 1, reason: 'refused' } };
  }
}

/** After a broken stream, the next one repeats open commands. */
async function listen(): Promise<never> {
  for (;;) {
    try {
      const stream = await request(`/agents/${agentId}/commands?${new URLSearchParams(me as never)}`);
      let rest = '';
      for await (const text of stream.body?.pipeThrough(new TextDecoderStream() as never) ?? []) {
        const frames = (rest + text).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) {
          if (frame.includes('event: command')) execute(JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? ''));
          if (frame.includes('event: fenced')) process.exit(1); // another runner has taken over
        }
      }
    } catch {}
    await pause(1_000);
  }
}

function execute({ id, type, body }: { id: string; type: string; body: Fields }): void {
  if (type !== 'message') acknowledge(id, 'failed', unsupported[type] ?? 'this runner does not know this command');
  else if (body.attachments) acknowledge(id, 'failed', 'this small runner supports no attachments');
  else if (delivered.has(id)) acknowledge(id, 'delivered');
  else if (!pending.has(id)) {
    pending.add(id); // acknowledged once a turn has started with it
    agent.stdin.write(`${JSON.stringify({ type, id, text: body.text })}\n`);
  }
}

const acknowledge = (id: string, state: string, reason?: string) =>
  void post(`/agents/${agentId}/commands/${id}/ack`, { state, reason, ...me });
const event = (type: string, more: Fields) => put('event', { type, ...more });
const custom = (name: string, value: Fields) => event('CUSTOM', { name, value });

/** The agent's line → AG-UI. */
function handleLine({ type, ...line }: Line): void {
  if (type === 'turn-start') {
    const { messages = [], task } = line;
    const fromTask = { turn: 'between-run', trigger: { kind: 'task', taskIds: [task] } };
    const interlude = task ? fromTask : { turn: 'user', userMessageIds: messages };
    turn = line.turn;
    put('event', { type: 'RUN_STARTED', runId: turn, metadata: { interlude } }, messages);
    for (const id of messages) if (delivered.add(id) && pending.delete(id)) acknowledge(id, 'delivered');
  } else if (type === 'say') {
    const chunk = { messageId: line.id, role: 'assistant' };
    // Each fits into a record, and none ends inside a character.
    for (const delta of line.text.match(/.{1,20000}/gsu) ?? []) event('TEXT_MESSAGE_CHUNK', { ...chunk, delta });
  } else if (type === 'task-start') custom('task:started', { task_id: line.task, description: line.description });
  else if (type === 'task-end') {
    custom('task:completed', { task_id: line.task, status: line.status, exit_code: line.exitCode });
  } else if (type === 'log') {
    put('log', { level: line.level, component: 'agent', ...redact(line.text) });
  } else if (type === 'turn-end') {
    if (line.status === 'failed') event('RUN_ERROR', { runId: turn, message: line.reason });
    else event('RUN_FINISHED', { runId: turn });
    turn = null;
  }
}

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('INTERLUDE_')));
const agent = spawn(CONFORMANCE_AGENT, { shell: true, stdio: ['pipe', 'pipe', 'inherit'], env: env as never });
if (records.length > 0) custom('session:ended', { reason: 'its runner ended' }); // which also ends open work
custom('session:started', {});
createInterface({ input: agent.stdout }).on('line', (line) => handleLine(JSON.parse(line)));
agent.on('exit', () => process.exit(1)); // a supervisor restarts both
void send();
void listen();
