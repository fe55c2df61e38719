/**
 * The trivial agent: `node trivial-agent.mjs [--journal FILE]`. Obeys the commands in its messages, and does what makes
 * agents hard to connect: turns that it starts itself, background tasks, requests, interrupts, crashes, very long texts.
 * docs/conformance.md documents its JSON lines. Plain JavaScript without packages, so that it starts quickly.
 *
 * Ordering: one turn at a time. The turn for a task that ended comes before the turns for waiting messages.
 * Failure: exits when stdin closes, whatever it is doing, so that it never outlives a killed runner.
 *
 * The journal has every line that the agent received or wrote, with the time, and how long each write blocked. Checks
 * compare it with what the runner sent.
 */
import { appendFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** @typedef {{ type?: string, id?: string, text?: string, allow?: boolean, task?: string, answers?: unknown }} Input */
/** @typedef {{ id: string, text: string }} Message */
/** @typedef {{ id: string, exitCode: number | null, status: string, summary: string }} EndedTask */

const journal = process.argv[process.argv.indexOf('--journal') + 1];
const hasJournal = process.argv.includes('--journal') && journal !== undefined;
/** Unique to this process. */
const prefix = `${process.pid.toString(36)}${Date.now().toString(36)}`;
const BIG_CHARACTERS = 10 * 1024 * 1024;
const MAX_QUOTED_CHARACTERS = 200;

/** @type {Message[]} */
const waiting = [];
/** @type {EndedTask[]} */
const ended = [];
/** @type {Map<string, { stop: AbortController }>} */
const tasks = new Map();
/** @type {Map<string, (answer: Input) => void>} */
const openRequests = new Map();
/** @type {AbortController | null} */
let turn = null;
let turnId = '';
let count = 0;
let isBusy = false;

/** @param {string} dir @param {Record<string, unknown>} line */
function note(dir, line) {
  if (!hasJournal) return;
  const { text } = line;
  const shown =
    typeof text === 'string' && text.length > MAX_QUOTED_CHARACTERS
      ? { text: text.slice(0, MAX_QUOTED_CHARACTERS) }
      : {};
  appendFileSync(journal, `${JSON.stringify({ at: Date.now(), pid: process.pid, dir, ...line, ...shown })}\n`);
}

/** Blocks while the runner does not read, as most agents do. @param {Record<string, unknown>} line */
function write(line) {
  const since = performance.now();
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let index = 0; index < bytes.length; ) index += writeSync(1, bytes, index);
  note('out', { ...line, blockedMs: Math.round(performance.now() - since) });
}

/** @param {string} text */
function say(text) {
  count += 1;
  write({ type: 'say', turn: turnId, id: `${prefix}-say-${count}`, text });
}

/** @param {Input} input */
function receive(input) {
  note('in', { ...input });
  if (input.type === 'message' && input.id !== undefined) waiting.push({ id: input.id, text: input.text ?? '' });
  else if (input.type === 'interrupt') turn?.abort();
  else if (input.type === 'stop') tasks.get(input.task ?? '')?.stop.abort();
  else if (input.type === 'answer') openRequests.get(input.id ?? '')?.(input);
  void runTurns();
}

async function runTurns() {
  if (isBusy) return;
  isBusy = true;
  for (;;) {
    const task = ended.shift();
    const message = task === undefined ? waiting.shift() : undefined;
    if (task !== undefined) await run({ task: task.id }, async () => say(`woken: ${task.summary}`));
    else if (message !== undefined) {
      await run({ messages: [message.id] }, (signal) => obey(message.text, signal));
    } else break;
  }
  isBusy = false;
}

/** @param {object} cause @param {(signal: AbortSignal) => Promise<unknown>} work */
async function run(cause, work) {
  const own = new AbortController();
  turn = own;
  count += 1;
  turnId = `${prefix}-turn-${count}`;
  write({ type: 'turn-start', turn: turnId, ...cause });
  const failure = await work(own.signal).then(
    () => null,
    (error) => (own.signal.aborted ? null : String(error.message)),
  );
  const status = own.signal.aborted ? 'interrupted' : failure === null ? 'finished' : 'failed';
  write({ type: 'turn-end', turn: turnId, status, ...(failure === null ? {} : { reason: failure }) });
  turn = null;
}

/** @param {string} text @param {AbortSignal} signal */
async function obey(text, signal) {
  const [, verb = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  const numbers = rest.split(/\s+/).map(Number);
  const command = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (command === undefined) return say(`unknown command: ${text}`);
  return await command(rest, numbers, signal);
}

/**
 * Commands by the first word of a message. @type {Record<string, (rest: string, numbers: number[], signal: AbortSignal)
 * => unknown>}
 */
const COMMANDS = {
  say: (rest) => say(rest),
  async count(_, [times = 1, everyMs = 0, units = 0], signal) {
    for (let index = 1; index <= times; index += 1) {
      say(`${index} ${'.'.repeat(units)}`.trim());
      await pause(everyMs, undefined, { signal });
    }
  },
  big: () => say('0123456789😀'.repeat(Math.ceil(BIG_CHARACTERS / 12)).slice(0, BIG_CHARACTERS)),
  hang: (_, __, signal) => pause(2 ** 31 - 1, undefined, { signal }),
  fail(rest) {
    throw new Error(rest || 'failed as requested');
  },
  crash: (_, [exitCode = 1]) => process.exit(exitCode),
  log(rest) {
    const [, level = 'info', text = ''] = /^(\S+)\s*(.*)$/s.exec(rest) ?? [];
    write({ type: 'log', level, text });
    say('logged');
  },
  background(_, [seconds = 1]) {
    const task = start(seconds * 1_000);
    say(`${task} runs in the background`);
  },
  async ask(rest, _, signal) {
    const answer = await ask({ kind: 'permission', tool: 'shell', input: { command: rest }, title: rest }, signal);
    say(answer.allow === true ? `allowed: ${rest}` : `denied: ${rest}`);
  },
  async question(rest, _, signal) {
    const answer = await ask({ kind: 'question', tool: null, input: { question: rest }, title: rest }, signal);
    say(`answered: ${JSON.stringify(answer.answers ?? null)}`);
  },
};

/** A command in the background, which ends with exit code 3. @param {number} ms */
function start(ms) {
  count += 1;
  const task = `${prefix}-task-${count}`;
  const stop = new AbortController();
  tasks.set(task, { stop });
  write({ type: 'task-start', task, description: `a command of ${ms / 1_000} s` });
  void pause(ms, undefined, { signal: stop.signal })
    .catch(() => undefined)
    .then(() => {
      tasks.delete(task);
      const status = stop.signal.aborted ? 'stopped' : 'failed';
      const exitCode = stop.signal.aborted ? null : 3;
      const summary = stop.signal.aborted ? `${task} was stopped` : `${task} exited with code 3`;
      write({ type: 'task-end', task, status, exitCode, summary });
      // A stopped task does not start a turn.
      if (!stop.signal.aborted) ended.push({ id: task, status, exitCode, summary });
      void runTurns();
    });
  return task;
}

/** @param {Record<string, unknown>} what @param {AbortSignal} signal @returns {Promise<Input>} */
async function ask(what, signal) {
  count += 1;
  const request = `${prefix}-request-${count}`;
  write({ type: 'ask', request, ...what });
  try {
    const answer = await new Promise((/** @type {(answer: Input) => void} */ resolve, reject) => {
      openRequests.set(request, resolve);
      signal.addEventListener('abort', () => reject(new Error('it was interrupted')));
    });
    const outcome = what.kind === 'question' ? 'answered' : answer.allow === true ? 'allowed' : 'denied';
    write({ type: 'answered', request, outcome });
    return answer;
  } catch (error) {
    write({ type: 'answered', request, outcome: 'cancelled' });
    throw error;
  } finally {
    openRequests.delete(request);
  }
}

note('start', { sees: Object.keys(process.env).filter((name) => name.startsWith('INTERLUDE_')) });
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  if (line.trim() !== '') receive(JSON.parse(line));
});
input.on('close', () => process.exit(0));
