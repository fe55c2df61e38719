/**
 * The trivial agent: `node trivial-agent.mjs [--journal FILE]`. It does what a message tells it to, and has what makes
 * agents hard to connect: turns of its own, background tasks, requests, interrupts, crashes, very long texts. It speaks
 * JSON lines; docs/conformance.md is its protocol. Plain JavaScript without a package, so that it starts at once.
 *
 * Ordering: one turn at a time. What ended in the background has its turn before what people wrote meanwhile.
 * Failure: it ends when its stdin does, whatever it is at, so nothing of it outlives a runner that was killed.
 *
 * The journal is its own account, by which a runner is judged: every line it got or wrote, when, and for how long
 * nobody read what it wrote.
 */
import { appendFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** @typedef {{ type?: string, id?: string, text?: string, allow?: boolean, task?: string, answers?: unknown }} Told */
/** @typedef {{ id: string, text: string }} Message */
/** @typedef {{ id: string, exitCode: number | null, status: string, summary: string }} EndedTask */

const journal = process.argv[process.argv.indexOf('--journal') + 1];
const hasJournal = process.argv.includes('--journal') && journal !== undefined;
/** Ids of one process are no other's. */
const prefix = `${process.pid.toString(36)}${Date.now().toString(36)}`;
const BIG_UNITS = 10 * 1024 * 1024;
const QUOTED_UNITS = 200;

/** @type {Message[]} */
const waiting = [];
/** @type {EndedTask[]} */
const ended = [];
/** @type {Map<string, { stop: AbortController }>} */
const tasks = new Map();
/** @type {Map<string, (said: Told) => void>} */
const asked = new Map();
/** @type {AbortController | null} */
let turn = null;
let turnId = '';
let count = 0;
let isBusy = false;

/** @param {string} dir @param {Record<string, unknown>} line */
function note(dir, line) {
  if (!hasJournal) return;
  const { text } = line;
  const shown = typeof text === 'string' && text.length > QUOTED_UNITS ? { text: text.slice(0, QUOTED_UNITS) } : {};
  appendFileSync(journal, `${JSON.stringify({ at: Date.now(), pid: process.pid, dir, ...line, ...shown })}\n`);
}

/** As long as nobody reads, the agent stands still, as most do. @param {Record<string, unknown>} line */
function tell(line) {
  const since = performance.now();
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
  note('out', { ...line, blockedMs: Math.round(performance.now() - since) });
}

/** @param {string} text */
function say(text) {
  count += 1;
  tell({ type: 'say', turn: turnId, id: `${prefix}-say-${count}`, text });
}

/** @param {Told} told */
function hear(told) {
  note('in', { ...told });
  if (told.type === 'message' && told.id !== undefined) waiting.push({ id: told.id, text: told.text ?? '' });
  else if (told.type === 'interrupt') turn?.abort();
  else if (told.type === 'stop') tasks.get(told.task ?? '')?.stop.abort();
  else if (told.type === 'answer') asked.get(told.id ?? '')?.(told);
  void live();
}

async function live() {
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
  tell({ type: 'turn-start', turn: turnId, ...cause });
  const failure = await work(own.signal).then(
    () => null,
    (error) => (own.signal.aborted ? null : String(error.message)),
  );
  const status = own.signal.aborted ? 'interrupted' : failure === null ? 'finished' : 'failed';
  tell({ type: 'turn-end', turn: turnId, status, ...(failure === null ? {} : { reason: failure }) });
  turn = null;
}

/** @param {string} text @param {AbortSignal} signal */
async function obey(text, signal) {
  const [, verb = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  const numbers = rest.split(/\s+/).map(Number);
  const command = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (command === undefined) return say(`I heard: ${text}`);
  return await command(rest, numbers, signal);
}

/** What a message can tell it to do. @type {Record<string, (rest: string, numbers: number[], signal: AbortSignal) => unknown>} */
const COMMANDS = {
  say: (rest) => say(rest),
  async count(_, [times = 1, everyMs = 0, units = 0], signal) {
    for (let at = 1; at <= times; at += 1) {
      say(`${at} ${'.'.repeat(units)}`.trim());
      await pause(everyMs, undefined, { signal });
    }
  },
  big: () => say('0123456789😀'.repeat(Math.ceil(BIG_UNITS / 12)).slice(0, BIG_UNITS)),
  hang: (_, __, signal) => pause(2 ** 31 - 1, undefined, { signal }),
  fail(rest) {
    throw new Error(rest || 'it was told to fail');
  },
  crash: (_, [exitCode = 1]) => process.exit(exitCode),
  log(rest) {
    const [, level = 'info', text = ''] = /^(\S+)\s*(.*)$/s.exec(rest) ?? [];
    tell({ type: 'log', level, text });
    say('logged');
  },
  background(_, [seconds = 1]) {
    const task = start(seconds * 1_000);
    say(`${task} runs in the background`);
  },
  async ask(rest, _, signal) {
    const said = await ask({ kind: 'permission', tool: 'shell', input: { command: rest }, title: rest }, signal);
    say(said.allow === true ? `allowed: ${rest}` : `denied: ${rest}`);
  },
  async question(rest, _, signal) {
    const said = await ask({ kind: 'question', tool: null, input: { question: rest }, title: rest }, signal);
    say(`answered: ${JSON.stringify(said.answers ?? null)}`);
  },
};

/** A command in the background, which ends with exit code 3. @param {number} ms */
function start(ms) {
  count += 1;
  const task = `${prefix}-task-${count}`;
  const stop = new AbortController();
  tasks.set(task, { stop });
  tell({ type: 'task-start', task, description: `a command of ${ms / 1_000} s` });
  void pause(ms, undefined, { signal: stop.signal })
    .catch(() => undefined)
    .then(() => {
      tasks.delete(task);
      const status = stop.signal.aborted ? 'stopped' : 'failed';
      const exitCode = stop.signal.aborted ? null : 3;
      const summary = stop.signal.aborted ? `${task} was stopped` : `${task} exited with code 3`;
      tell({ type: 'task-end', task, status, exitCode, summary });
      // Whoever stopped it knows.
      if (!stop.signal.aborted) ended.push({ id: task, status, exitCode, summary });
      void live();
    });
  return task;
}

/** @param {Record<string, unknown>} what @param {AbortSignal} signal @returns {Promise<Told>} */
async function ask(what, signal) {
  count += 1;
  const request = `${prefix}-request-${count}`;
  tell({ type: 'ask', request, ...what });
  try {
    const said = await new Promise((/** @type {(said: Told) => void} */ resolve, reject) => {
      asked.set(request, resolve);
      signal.addEventListener('abort', () => reject(new Error('it was interrupted')));
    });
    const outcome = what.kind === 'question' ? 'answered' : said.allow === true ? 'allowed' : 'denied';
    tell({ type: 'answered', request, outcome });
    return said;
  } catch (error) {
    tell({ type: 'answered', request, outcome: 'cancelled' });
    throw error;
  } finally {
    asked.delete(request);
  }
}

note('start', { sees: Object.keys(process.env).filter((name) => name.startsWith('INTERLUDE_')) });
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  if (line.trim() !== '') hear(JSON.parse(line));
});
input.on('close', () => process.exit(0));
