import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent, TimedEvent } from '@interlude/protocol/ag-ui';
import type { Task, Turn } from '@interlude/protocol/read-models';
import type { SessionState } from '@interlude/protocol/session-states';
import { play, readRecording } from '@interlude/runner/cli/recording';
import { routeHook } from '@interlude/runner/sources/hooks/hooks-source';
import { MessageInbox } from '@interlude/runner/sources/hooks/message-inbox';
import { PermissionHooks } from '@interlude/runner/sources/hooks/permission-hooks';
import { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import { unscoped } from '@/lib/server/access/request-context';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { type InProcessTarget, ingest, inProcessTarget } from './ingest-target';
import { tempDir } from './temp-dir';

const FOLDER = fileURLToPath(new URL('../fixtures/cases/', import.meta.url));
const SESSION = 's1';

/** The expected result of a case in `tests/fixtures/cases`. Omitted fields aren't checked. */
interface Expected {
  state?: SessionState;
  whileRunning?: SessionState;
  turns?: { kind: Turn['kind']; state?: Turn['state']; trigger?: string; taskIds?: string[]; texts?: string[] }[];
  tasks?: { id: string; status: Task['status'] }[];
  /** Texts that must occur in exactly one item each. */
  once?: string[];
  /** Tool calls still running at the end. */
  running?: number;
  /** Pattern that a notice must match. */
  notice?: string;
  /** Number of parked records. */
  parked?: number;
}

interface Played {
  turns: Turn[];
  tasks: Task[];
  state: SessionState | null;
  /** Session states at each `look`. */
  seen: (SessionState | null)[];
}

/** A terminal step: a hook call, a transcript line, or elapsed time. */
interface Step {
  wait?: number;
  newProcess?: true;
  look?: true;
  hook?: string;
  input?: Record<string, unknown>;
  line?: object;
  raw?: (string | object)[];
  sub?: string;
  subLine?: object;
}

export function expectedOf(name: string): Expected {
  return JSON.parse(readFileSync(join(FOLDER, name, 'expect.json'), 'utf8'));
}

/** Plays a case in this process: hooks and transcript, a recording, or a producer's events. */
export async function playCase(name: string): Promise<Played> {
  const clock = { now: Date.parse('2026-11-28T12:00:00Z') };
  const target = await inProcessTarget(() => clock.now);
  try {
    const sink = new Sink(target, clock);
    const file = (part: string) => join(FOLDER, name, part);
    const seen = existsSync(file('steps.jsonl')) ? await playSteps(file('steps.jsonl'), sink, clock) : [];
    if (existsSync(file('recording.jsonl'))) await playRecording(file('recording.jsonl'), sink);
    if (existsSync(file('events.json')))
      for (const event of JSON.parse(readFileSync(file('events.json'), 'utf8')) as AgUiEvent[])
        await sink.take([{ event, occurredAt: clock.now++ }]);
    return { ...(await sink.read()), seen };
  } finally {
    await target.close();
  }
}

/** Ingests the session's events in order. */
class Sink {
  readonly #target: InProcessTarget;
  readonly #clock: { now: number };
  #seq = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(target: InProcessTarget, clock: { now: number }) {
    this.#target = target;
    this.#clock = clock;
  }

  take(events: readonly { event: AgUiEvent; occurredAt: number }[]): Promise<unknown> {
    const records = events.map((one) => ({
      ...{ seq: ++this.#seq, kind: 'event', agentId: 'a1', sessionId: SESSION },
      ...one,
    }));
    if (records.length > 0) this.#last = this.#last.then(() => ingest(this.#target, records));
    return this.#last;
  }

  async read(): Promise<Omit<Played, 'seen'>> {
    await this.#last;
    const sight = unscoped(this.#target.database);
    const page = await readTranscript(sight, SESSION, { before: null, limit: 200 });
    const tasks = await readTasks(sight, SESSION);
    return { turns: page?.turns ?? [], tasks: tasks?.tasks ?? [], state: await this.state() };
  }

  async state(): Promise<SessionState | null> {
    await this.#last;
    const detail = await readSession(unscoped(this.#target.database), SESSION);
    return detail?.session.state ?? null;
  }

  get now(): number {
    return this.#clock.now;
  }
}

async function playRecording(file: string, sink: Sink): Promise<void> {
  await play({
    recording: await readRecording(file),
    sessionId: SESSION,
    fromLine: 0,
    speed: Number.POSITIVE_INFINITY,
    signal: new AbortController().signal,
    emit: async (events) => void (await sink.take(events)),
  });
}

/** Observation time after the last step. */
const AFTER_MS = 15_000;

async function playSteps(file: string, sink: Sink, clock: { now: number }): Promise<(SessionState | null)[]> {
  const seen: (SessionState | null)[] = [];
  const terminal = new SteppedTerminal(await tempDir(), clock, async (outputs) => void (await sink.take(outputs)));
  for (const step of stepsIn(file)) {
    if (step.look) seen.push(await sink.state());
    await terminal.does(step);
  }
  await terminal.pass(AFTER_MS);
  return seen;
}

/** The terminal steps of a case. */
export function stepsIn(file: string): Step[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** A scripted terminal and its mirror. */
export class SteppedTerminal {
  readonly mirror: SessionMirror;
  readonly #clock: { now: number };
  readonly #transcript: string;
  readonly #signal = new AbortController().signal;
  readonly #around;
  #pid = 2_147_483_000;
  #count = 0;

  constructor(home: string, clock: { now: number }, emit: (outputs: TimedEvent[]) => void | Promise<void>) {
    this.#clock = clock;
    this.#transcript = join(home, `${SESSION}.jsonl`);
    writeFileSync(this.#transcript, '');
    this.mirror = new SessionMirror({
      ...{ sessionId: SESSION, file: this.#transcript, state: null, now: () => clock.now },
      emit,
      onDelivered: () => undefined,
      onTurnEnded: () => undefined,
      log: () => undefined,
    });
    const permissions = new PermissionHooks({ onChange() {}, onAnswered() {}, onReleased() {} });
    this.#around = {
      obligations: () => [],
      inbox: new MessageInbox(),
      permissions,
      offer: () => null,
      log: () => undefined,
    };
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 200) {
      this.#clock.now += Math.min(left, 200);
      await this.mirror.step();
    }
  }

  async does(step: Step): Promise<void> {
    const transcript = this.#transcript;
    if (step.wait !== undefined) await this.pass(step.wait);
    if (step.newProcess) {
      this.#pid += 1;
      await this.pass(400);
    }
    if (step.hook !== undefined) {
      const input = { session_id: SESSION, transcript_path: transcript, hook_event_name: step.hook, ...step.input };
      const about = { pid: this.#pid, at: this.#clock.now, from: 'cli', withinMs: null, signal: this.#signal };
      void routeHook({ event: step.hook, input, ...about }, { mirror: () => this.mirror, ...this.#around });
      await this.mirror.step();
    }
    if (step.line !== undefined) appendFileSync(transcript, `${this.#stamped(step.line)}\n`);
    if (step.raw !== undefined) {
      const parts = step.raw.map((part) => (typeof part === 'string' ? part : this.#stamped(part)));
      appendFileSync(transcript, `${parts.join('')}\n`);
    }
    if (step.sub !== undefined) {
      const own = join(dirname(transcript), basename(transcript, '.jsonl'), 'subagents', `agent-${step.sub}.jsonl`);
      mkdirSync(dirname(own), { recursive: true });
      appendFileSync(own, `${this.#stamped({ ...step.subLine, agentId: step.sub, isSidechain: true })}\n`);
    }
    await this.pass(20);
  }

  /** Adds the id and time of a real CLI line. */
  #stamped(line: object): string {
    const timestamp = new Date(this.#clock.now).toISOString();
    return JSON.stringify({ timestamp, sessionId: SESSION, uuid: `u${++this.#count}`, ...line });
  }
}

/** Returns each difference from the expected result as a line. */
export function differences({ turns, tasks, state, seen }: Played, expected: Expected): string[] {
  const own = turns.filter(({ kind }) => kind !== 'none');
  const items = turns.flatMap((turn) => turn.items);
  const found: string[] = [];
  const same = (what: string, actual: unknown, wanted: unknown) => {
    if (wanted !== undefined && JSON.stringify(actual) !== JSON.stringify(wanted))
      found.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`);
  };
  same('state', state, expected.state);
  same('state while running', seen[0], expected.whileRunning);
  same(
    'turns',
    own.map(({ kind }) => kind),
    expected.turns?.map(({ kind }) => kind),
  );
  for (const [index, wanted] of (expected.turns ?? []).entries()) {
    const turn = own[index];
    same(`turn ${index + 1}: state`, turn?.state, wanted.state);
    same(`turn ${index + 1}: trigger`, turn?.trigger?.kind, wanted.trigger);
    same(`turn ${index + 1}: tasks`, turn?.trigger?.taskIds, wanted.taskIds);
    for (const text of wanted.texts ?? [])
      same(
        `turn ${index + 1}: “${text}”`,
        turn?.items.filter((item) => 'text' in item && item.text.includes(text)).length,
        1,
      );
  }
  same(
    'tasks',
    tasks.map(({ id, status }) => ({ id, status })),
    expected.tasks,
  );
  for (const text of expected.once ?? []) {
    const has = (item: object) =>
      JSON.stringify(['text', 'args', 'result'].map((name) => Reflect.get(item, name))).includes(text);
    same(`“${text}”`, items.filter(has).length, 1);
  }
  same(
    'calls that run',
    items.filter((item) => item.kind === 'tool-call' && item.status === 'running').length,
    expected.running,
  );
  const notices = items.flatMap((item) => (item.kind === 'notice' ? [item.text] : []));
  if (expected.notice !== undefined && !notices.some((text) => new RegExp(expected.notice as string, 'i').test(text)))
    found.push(`no notice says ${expected.notice}`);
  same('parked records', notices.filter((text) => text.includes('parked')).length, expected.parked);
  return found;
}
