import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { COMMAND_TYPES } from '@interlude/protocol/commands';
import { eventRecordSchema } from '@interlude/protocol/envelope';
import { isNothing, NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import type { AttachmentFile } from '@interlude/runner/host/attachment-store';
import type { OpenObligation } from '@interlude/runner/host/obligations';
import {
  type CommandHandlers,
  type CommandOf,
  HANDLER_NAMES,
  type Source,
  type SourceContext,
} from '@interlude/runner/host/source';
import type { Feature, KindFeatures } from '@interlude/runner/sources/runner-kind';
import { expect, onTestFinished, test } from 'vitest';

/** A scripted agent of one kind and its sources. */
export interface SourceStage {
  /** Creates an unstarted source. A second call replaces a killed one. */
  open(surroundings: MemorySourceContext): Source | Promise<Source>;
  /** Starts a turn of the agent. */
  begin(): Promise<void>;
  /** Completes all running work; does nothing if idle. */
  finish(): Promise<void>;
  /** Input received by the agent; absent if the agent takes no input. */
  heard?(): string[];
  /** Verbs that the source offers only when applicable. */
  sometimes?: readonly (keyof CommandHandlers)[];
  /** The agent isn't a child of the source and outlives it. */
  goesOn?: boolean;
  /** Capabilities declared by the kind. */
  features?: KindFeatures;
}

/** User features and the verb of each. */
const DONE_BY: Partial<Record<Feature, keyof CommandHandlers>> = {
  messages: 'deliver',
  interrupt: 'interrupt',
  end: 'end',
  stop: 'stop',
  wake: 'wake',
  permissions: 'answer',
  questions: 'answer',
};

/** Tests the contract of every source. @see lib/runner/sources/README.md */
export function testSourceContract(makeStage: () => Promise<SourceStage>): void {
  async function stage() {
    const played = await makeStage();
    let around = new MemorySourceContext();
    let source = await connect();
    onTestFinished(() => source.close(0, 'the test is over'));
    return {
      ...played,
      source: () => source,
      around: () => around,
      /** Simulates SIGKILL: only stored state remains, and the old source's output is ignored. */
      async killed() {
        const before = source;
        around.deafen();
        around = new MemorySourceContext(undefined, around);
        source = await connect();
        // It would start its agent again, which a dead runner can't.
        await before.close(0, 'killed');
      },
    };

    async function connect() {
      const opened = await played.open(around);
      // Like the host, probes an agent that may have died before starting its source.
      await opened.reach?.();
      await opened.start();
      return opened;
    }
  }

  const openIn = (around: MemorySourceContext) => around.sessionIds.filter((id) => !isNothing(around.openWork(id)));
  const settled = (look: () => unknown) => expect.poll(look, { interval: 10 });

  test('emits only valid events of its own sessions', async () => {
    const { begin, finish, around, source } = await stage();
    const carried = new Set<string>();
    around().onTold = () => {
      for (const { sessionId } of source().sessions) carried.add(sessionId);
    };
    await begin();
    await finish();
    expect(around().told.length).toBeGreaterThan(0);
    for (const [index, { sessionId, occurredAt, event }] of around().told.entries()) {
      const record = { seq: index + 1, kind: 'event', agentId: 'a', sessionId, occurredAt, event };
      expect(eventRecordSchema.safeParse(record).error).toBeUndefined();
      expect([...carried]).toContain(sessionId);
    }
  });

  test('has an open turn from its start to its end', async () => {
    const { begin, finish, around } = await stage();
    expect(openIn(around())).toEqual([]);
    await begin();
    const [sessionId = ''] = openIn(around());
    expect(around().openWork(sessionId).turn).not.toBeNull();
    await finish();
    await settled(() => around().openWork(sessionId).turn).toBeNull();
  });

  test('repeats nothing and leaves nothing open after a kill within a turn', async () => {
    const { begin, finish, around, source, killed } = await stage();
    await begin();
    const [sessionId = ''] = openIn(around());
    const first = around().openWork(sessionId).turn?.runId;
    await killed();
    await finish();
    await settled(() => around().openWork(sessionId).turn?.runId).not.toBe(first);
    await source().close(0, 'closed');
    const told = around().told.filter((one) => one.sessionId === sessionId);
    const of = (type: string, id: 'runId' | 'messageId' | 'toolCallId') =>
      told.filter(({ event }) => event.type === type).map(({ event }) => String(event[id]));
    for (const ids of [
      of('RUN_STARTED', 'runId'),
      of('TEXT_MESSAGE_START', 'messageId'),
      of('TOOL_CALL_START', 'toolCallId'),
    ]) {
      expect(ids).toEqual([...new Set(ids)]);
    }
    const ends = told.filter(
      ({ event: { type, runId, name } }) =>
        name === 'session:ended' || ((type === 'RUN_FINISHED' || type === 'RUN_ERROR') && runId === first),
    );
    expect(ends.length).toBeGreaterThan(0);
    expect(of('RUN_FINISHED', 'runId')).not.toContain(of('RUN_ERROR', 'runId')[0]);
  });

  test('has a handler or a reason for each command', async () => {
    const { source } = await stage();
    for (const type of COMMAND_TYPES) {
      if (type === 'log-level.set' || source()[HANDLER_NAMES[type]] !== undefined) continue;
      expect(source().refusals?.[type]).toMatch(/\w+ \w+/);
    }
  });

  test('has exactly the handlers that its kind declares', async () => {
    const { source, features, sometimes = [] } = await stage();
    if (features === undefined) return;
    const named = Object.entries(DONE_BY) as [Feature, keyof CommandHandlers][];
    for (const verb of new Set(Object.values(DONE_BY))) {
      const of = named.filter(([, one]) => one === verb).map(([feature]) => features[feature]);
      const isSupported = of.some((support) => support === true || 'partly' in support);
      if (sometimes.includes(verb) && isSupported) continue;
      expect([verb, source()[verb] !== undefined]).toEqual([verb, isSupported]);
    }
  });

  test('reports attachments if its kind supports any', async () => {
    const { source, features, begin } = await stage();
    if (features === undefined) return;
    // some agents report it only then
    await begin();
    const [facts] = source().sessions;
    const { attachments } = features;
    const takes = attachments === true || 'partly' in attachments;
    expect((facts?.attachments ?? []).length > 0).toBe(takes);
  });

  test('delivers a message once when killed during its delivery', async () => {
    const { source, heard, killed, begin, goesOn = false } = await stage();
    if (heard === undefined) return;
    await begin();
    const [{ sessionId } = { sessionId: '' }] = source().sessions;
    const from = { kind: 'person', id: 'operator' } as const;
    const body = { messageId: 'm1', text: 'hello', from };
    const command: CommandOf<'message'> = { id: 'm1', type: 'message', sessionId, createdAt: 1, expiresAt: 2, body };
    expect(await source().deliver?.(command, false)).toEqual({ state: 'delivered' });
    expect(await source().deliver?.(command, true)).toEqual({ state: 'delivered' });
    expect(heard()).toEqual(['hello']);
    await killed();
    expect(await source().deliver?.(command, true)).toEqual({ state: 'delivered' });
    // If the receiving process is gone, the next one gets the message once; a surviving process already has it.
    await settled(heard).toEqual(goesOn ? ['hello'] : ['hello', 'hello']);
  });

  test('emits nothing and leaves nothing open after close', async () => {
    const { source, around, begin, goesOn } = await stage();
    await begin();
    await source().close(0, 'the runner was stopped');
    const told = around().told.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect(around().told).toHaveLength(told);
    if (goesOn) return;
    expect(openIn(around())).toEqual([]);
    expect(around().events.at(-1)).toMatchObject({ type: 'CUSTOM', name: 'session:ended' });
  });
}

/** An in-memory SourceContext. Records the source's events and derives open work. */
export class MemorySourceContext implements SourceContext {
  readonly told: { sessionId: string; occurredAt: number; event: AgUiEvent }[];
  readonly stored: Map<string, string>;
  onTold = () => {};
  readonly #open: Map<string, OpenWork>;
  readonly #obligations: () => OpenObligation[];
  #isDeaf = false;

  /** @param before the context of a killed process */
  constructor(obligations: () => OpenObligation[] = () => [], before?: MemorySourceContext) {
    this.#obligations = obligations;
    this.told = [...(before?.told ?? [])];
    this.stored = new Map(before?.stored);
    this.#open = new Map(before === undefined ? [] : before.#open);
  }

  /** Ignores further events, as after a SIGKILL. */
  deafen(): void {
    this.#isDeaf = true;
  }

  get sessionIds(): string[] {
    return [...this.#open.keys()];
  }

  get events(): AgUiEvent[] {
    return this.told.map(({ event }) => event);
  }

  readonly emit: SourceContext['emit'] = async (sessionId, events, cursors = []) => {
    if (this.#isDeaf) return;
    this.onTold();
    this.told.push(...events.map((one) => ({ sessionId, ...one })));
    this.#open.set(sessionId, workAfter(this.openWork(sessionId), events));
    for (const { name, value } of cursors) {
      if (value === null) this.stored.delete(name);
      else this.stored.set(name, value);
    }
  };

  readonly announceSession: SourceContext['announceSession'] = (sessionId, _at, cursors) =>
    this.emit(sessionId, [], cursors);
  readonly openWork = (sessionId: string) => this.#open.get(sessionId) ?? NOTHING_OPEN;
  readonly cursors = async (prefix: string) => new Map([...this.stored].filter(([name]) => name.startsWith(prefix)));
  readonly resolveFiles: SourceContext['resolveFiles'] = async (_, files) => this.filesHere?.([...files]) ?? [...files];
  /** Paths of attachment files of pending messages. */
  filesHere: ((files: AttachmentFile[]) => AttachmentFile[]) | null = null;
  readonly obligations = () => this.#obligations();
  readonly toolServer = () => null;
  readonly callTool = () => async () => ({ text: '', isError: false });
  /** Final command results by id. */
  readonly reported: Parameters<SourceContext['report']>[] = [];
  readonly report: SourceContext['report'] = (...reported) => void this.reported.push(reported);
  readonly changed = () => undefined;
  readonly failRunner = () => undefined;
  readonly endRunner = () => undefined;
  /** Log lines: `warn …`. */
  readonly logged: string[] = [];
  readonly log: SourceContext['log'] = (level, message) => void this.logged.push(`${level} ${message}`);
}
