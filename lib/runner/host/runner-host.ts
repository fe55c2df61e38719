import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { CUSTOM, type TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import type { Command } from '@interlude/protocol/commands';
import { isNothing, NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import { CommandClient, type CommandLink } from '../commands/command-client';
import { type CommandOutcome, SeenCommands } from '../commands/seen-commands';
import type { ControlPort } from '../control-port/control-port';
import { DeliveryJournal } from '../logger/delivery-journal';
import { EventJournal } from '../logger/event-journal';
import { KeptLevel } from '../logger/kept-level';
import type { LevelSwitch } from '../logger/level-switch';
import type { LogEntry } from '../logger/log-line';
import { createLogger, type Logger } from '../logger/logger';
import type { Redactor } from '../logger/redactor';
import { type ToolServer, toolServer } from '../mcp/tool-server';
import type { OutboxNotice } from '../outbox/delivery';
import type { Outbox, OutboxOptions, OutboxStatus, OutgoingRecord } from '../outbox/outbox';
import type { Cursor } from '../outbox/statements';
import type { Endpoint } from '../server-request';
import { CpuSampler } from './agent-processes';
import { AgentWatch, UNREACHABLE_CURSOR } from './agent-reachability';
import { AttachmentStore } from './attachment-store';
import { ContextRatio } from './context-ratio';
import { deliverFirstMessage, type FirstMessage } from './first-message';
import { McpTools } from './mcp-tools';
import { IN_FLIGHT_CURSORS, MessageDelivery } from './message-delivery';
import { openControl } from './open-control';
import { openWorkCursor, readOpenWork } from './open-work-cursor';
import { fetchPendingReplies, PendingReplies } from './pending-replies';
import { RecordSink } from './record-sink';
import { type CommandOf, HANDLER_NAMES, type SessionFacts, type Source, type SourceContext } from './source';
import {
  REPORT_EVERY_MS,
  ReportSelector,
  type StatusRecord,
  StatusReporter,
  statusRecord,
  supportedCommands,
} from './status-report';
import { TaskOutputs } from './task-outputs';
import { type CallerRule, RunningCalls, ToolCallers } from './tool-callers';

/**
 * The runner of one agent with any number of sessions: everything around a source, started and ended in order.
 *
 * Ordering: a session is told before anything happens in it; commands are accepted once the source can act on them. At
 * the end no more commands are accepted, then the source ends, everything it said is stored, and then sent.
 * Failure: while the server is away, only people's commands stop. What is open is stored with the events that opened
 * it, so the host that follows after a kill knows of it.
 */
export interface RunnerHostOptions {
  /** What the status record says beyond what the host knows: above all the kind. */
  about: AgentStatus & { kind: string };
  /** The component that hands events over, if the log is to tell what they say. */
  journal?: string | undefined;
  /** Each line of that names its session: it is the log of several. */
  carriesMany?: boolean | undefined;
  /** Whether it says of each session that ends how many of its tool calls only gathered. Default true. */
  tellsContextRatio?: boolean;
  /** What goes on while the dashboard is away: `the agent goes on`. */
  meanwhile: string;
  openOutbox: (listeners: OutboxListeners) => Promise<Outbox>;
  endpoint: Endpoint;
  dataDir: string;
  /** Where hooks find this runner; without it they can't. */
  controlFile?: (agentId: string) => string;
  /** How calls of Interlude's tools prove whose they are; by default the process of a session is above them. */
  callers?: CallerRule | undefined;
  /** INTERLUDE_LOG_LEVEL, or the switch itself. */
  level: LevelSwitch | string | undefined;
  redactor?: Redactor;
  /** The folder of the agent's log; by default `logs` in the data folder. */
  logDir?: string;
  /** This process. */
  runnerId?: string;
  startedAt?: number;
  onStatus?: ((status: OutboxStatus) => void) | undefined;
  onLink?: ((link: CommandLink) => void) | undefined;
  /** Where the terminal learns that an agent which the runner did not start can't be reached, and that it is back. */
  say?: (line: string) => void;
  /** Shorter in tests. */
  reach?: { everyMs?: number; limitMs?: number };
}

export type OutboxListeners = Required<Pick<OutboxOptions, 'endpoint' | 'sendAtOpen' | 'onStatus' | 'onNotice'>>;

const FEW_WAITING = 50;
const OWNS_NOTHING_MS = 15_000;
const BEFORE_SOURCE: CommandOutcome = { state: 'failed', reason: 'the runner is still starting' };

export class RunnerHost {
  readonly agentId: string;
  readonly outbox: Outbox;
  readonly logger: Logger;
  readonly #options: RunnerHostOptions;
  readonly #runner: { id: string; pid: number; startedAt: number };
  readonly #log: Logger;
  readonly #delivery: DeliveryJournal;
  readonly #sink: RecordSink;
  readonly #status: StatusReporter;
  readonly #reports = new ReportSelector();
  readonly #cpu = new CpuSampler();
  readonly #owed: PendingReplies;
  readonly #desk: McpTools;
  readonly #callers: ToolCallers;
  readonly #calls = new RunningCalls();
  readonly #outputs: TaskOutputs;
  readonly #ratio: ContextRatio | null;
  readonly #journals = new Map<string, EventJournal>();
  readonly #attachments: AttachmentStore;
  readonly #carried: MessageDelivery;
  readonly #stopping = new AbortController();
  readonly #over = new AbortController();
  /** By session; a session with nothing open is missing. */
  #open = new Map<string, OpenWork>();
  #source: Source | null = null;
  #commands: CommandClient | null = null;
  #control: ControlPort | null = null;
  #level: KeptLevel | null = null;
  #watch: AgentWatch | null = null;
  /** Sessions that belong to other agents: what is said of them is rejected. */
  readonly #foreign = new Set<string>();
  #ownsNothingSince: number | null = null;
  /** The one session that it runs; null where it follows several. */
  #only: string | null = null;
  #lost = 0;
  #endsFor = 'the runner was stopped';
  #endsInOrder = false;

  /** @throws ProcessLockedError when another process runs the agent */
  static async open(options: RunnerHostOptions): Promise<RunnerHost> {
    let host: RunnerHost | null = null;
    // A damaged outbox is noticed before there is a log to write that to.
    const early: OutboxNotice[] = [];
    const opened = await options.openOutbox({
      endpoint: options.endpoint,
      sendAtOpen: false,
      onStatus: (status) => {
        options.onStatus?.(status);
        if (host !== null) host.#outboxChanged(status);
      },
      onNotice: (notice) => (host === null ? early.push(notice) : host.#noticed(notice)),
    });
    host = new RunnerHost(options, opened);
    for (const notice of early) host.#noticed(notice);
    return host;
  }

  private constructor(options: RunnerHostOptions, outbox: Outbox) {
    const { endpoint, dataDir, logDir = join(dataDir, 'logs'), level, redactor, meanwhile } = options;
    const { agentId } = outbox;
    this.#options = options;
    this.agentId = agentId;
    this.outbox = outbox;
    const { runnerId = randomUUID(), startedAt = Date.now() } = options;
    this.#runner = { id: runnerId, pid: process.pid, startedAt };
    this.#sink = new RecordSink({
      enqueue: (records, cursors) => outbox.enqueue(records, cursors),
      onTrouble: (message) => process.stderr.write(`interlude: ${message}\n`),
    });
    const onRecord = (entry: LogEntry) => this.#logged(entry);
    this.logger = createLogger({ agentId, dir: logDir, level, onRecord, ...(redactor ? { redactor } : {}) });
    this.#log = this.logger.child('host');
    this.#delivery = new DeliveryJournal({ logger: this.logger, meanwhile });
    this.#status = new StatusReporter({ report: () => this.#report() });
    this.#owed = new PendingReplies(
      (signal) => fetchPendingReplies(endpoint, agentId, signal),
      (message) => this.logger.child('obligations').debug(message),
    );
    this.#desk = new McpTools({
      emit: (sessionId, events) => void this.#emit(sessionId, events, []),
      store: (cursors) => void this.#sink.accept([], cursors),
      openWork: (sessionId) => this.#open.get(sessionId) ?? NOTHING_OPEN,
      owed: () => this.#owed.get(),
      caughtUp: async (sessionId) => await this.#source?.caughtUp?.(sessionId),
      replied: (sessionId, messageId) => this.#source?.replied?.(sessionId, messageId),
      reported: () => void this.#status.now(),
    });
    this.#callers = new ToolCallers({
      rule: options.callers,
      sessions: () => this.#source?.sessions ?? [],
      calls: this.#calls,
      openWork: (sessionId) => this.#open.get(sessionId) ?? NOTHING_OPEN,
      caughtUp: async (sessionId) => await this.#source?.caughtUp?.(sessionId),
      toolsOf: (sessionId) => this.#desk.of(sessionId),
    });
    const ofSessions = this.logger.child('session');
    this.#ratio =
      options.tellsContextRatio === false
        ? null
        : new ContextRatio({ tell: (message, about) => ofSessions.log('info', message, about) });
    this.#attachments = new AttachmentStore({
      endpoint,
      dir: join(dataDir, 'attachments'),
      signal: this.#stopping.signal,
      log: (message) => this.#log.warn(message),
      inHand: async () => {
        const stored = await Promise.all(IN_FLIGHT_CURSORS.map((prefix) => outbox.cursors(prefix)));
        return stored.flatMap((cursors) => [...cursors.values()]).join('\n');
      },
    });
    this.#carried = new MessageDelivery(this.#attachments);
    this.#outputs = new TaskOutputs({
      store: (sessionId, events, cursors) => this.#sink.accept(this.#recordsOf(sessionId, events), [...cursors]),
      backlog: () => this.#backlog(),
      redactor: this.logger.redactor,
      log: (message) => this.logger.child('task-output').debug(message),
    });
  }

  /** Fires when the runner is to end by itself; its reason is why, in one line. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Why it can't go on; null while it can, and where people have ended its session. */
  get failure(): string | null {
    return this.over.aborted && !this.#endsInOrder ? String(this.over.reason) : null;
  }

  /** @param sessionId the one session that it runs, if it does not follow several */
  async start(
    openSource: (context: SourceContext) => Source | Promise<Source>,
    sessionId: string | null = null,
  ): Promise<void> {
    const { outbox, logger } = this;
    this.#only = sessionId;
    this.#open = await readOpenWork(outbox);
    await this.#desk.recall(outbox);
    await this.#ratio?.recall(outbox);
    await this.#outputs.recall(outbox, this.#open);
    const source = await openSource(this.#context());
    this.#source = source;
    await this.#watchAgent(source);
    // An agent that may have died meanwhile is asked before anybody is told that it is still at work.
    if (this.#open.size > 0) await this.#watch?.look();
    this.#level = await KeptLevel.restore(logger.level, outbox, (message) => this.#log.warn(message));
    logger.level.onSet(() => this.#status.changed());
    await this.#status.start();
    // Not earlier: what the previous runner said about itself is no longer told.
    outbox.kick();
    this.#commands = await this.#commandClient();
    await this.#openControl(source);
    if (source.say !== undefined) this.#owed.start();
    await source.start();
    this.#watch?.start();
    this.#commands.start();
    this.#attachments.keepTidy();
  }

  /** Says to the agent what the person who started the runner has for it. Resolves once the agent has it. */
  async sayFirst(asked: FirstMessage): Promise<void> {
    const say = this.#source?.say?.bind(this.#source);
    if (say === undefined) return;
    await deliverFirstMessage(asked, { context: this.#context(), say });
    this.#owed.markDirty();
  }

  /** @returns how many records wait for the next runner */
  async close(deadlineMs: number, flushMs: number): Promise<{ waiting: number }> {
    try {
      await this.#commands?.hold();
      this.#stopping.abort();
      await this.#watch?.stop();
      await this.#source?.close(deadlineMs, this.#endsFor);
      await this.#outputs.close();
      if (this.#options.about.agentGoesOn !== true) {
        void this.#sink.accept([], this.#ratio?.left(this.#endsFor, Date.now()));
      }
      await this.#control?.close();
      await this.#commands?.stop();
      this.#owed.stop();
      if (this.#source !== null) await this.#status.stop();
      await this.#sink.close();
      return await this.outbox.stop({ flushMs });
    } finally {
      this.logger.close();
    }
  }

  /** For somebody who will not wait for `close`: ends what runs now. */
  hurry(): void {
    void this.#source?.close(0, this.#endsFor);
  }

  #context(): SourceContext {
    const said = this.logger.child(this.#options.journal ?? this.#options.about.kind);
    return {
      emit: (sessionId, events, cursors) => this.#emit(sessionId, events, cursors ?? []),
      opened: async (sessionId, at = Date.now(), cursors = []) => {
        await this.#sink.accept(
          [this.#statusOf({ sessionId, attachments: null }, await this.#about(), at)],
          [...cursors],
        );
      },
      openWork: (sessionId) => this.#open.get(sessionId) ?? NOTHING_OPEN,
      cursors: (prefix) => this.outbox.cursors(prefix),
      attached: (sessionId, files) => this.#attachments.again(sessionId, files),
      owed: () => this.#desk.owed(),
      callTool: (of) => this.#callers.callerIn(of),
      toolServer: (of) => this.#toolServer(of),
      report: (id, outcome) => void this.#commands?.report(id, outcome),
      changed: () => {
        this.#status.changed();
        this.#carried.look();
      },
      over: (reason) => this.#isEnded(reason),
      gaveUp: (message) => this.#isOver(message),
      log: (level, message, about) => said.log(level, message, about),
    };
  }

  #emit(sessionId: string, said: readonly TimedEvent[], given: readonly Cursor[]): Promise<void> {
    const before = this.#open.get(sessionId) ?? NOTHING_OPEN;
    const { events: passed, cursors: own } = this.#desk.passed(sessionId, said, before);
    const { events, cursors: counted } = this.#ratio?.passed(sessionId, passed) ?? { events: passed, cursors: [] };
    const cursors = [...given, ...own, ...counted];
    const open = workAfter(before, events);
    if (open !== before) {
      if (isNothing(open)) this.#open.delete(sessionId);
      else this.#open.set(sessionId, open);
      this.#status.changed();
    }
    this.#calls.saw(sessionId, events);
    this.#tell(sessionId, events);
    if (events.length > 0) this.#cpu.told(sessionId, performance.now());
    if (events.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')) this.#owed.markDirty();
    const stored = open === before ? cursors : [...cursors, openWorkCursor(sessionId, open)];
    const done = this.#sink.accept(this.#recordsOf(sessionId, events), stored);
    this.#outputs.saw(sessionId, events);
    return done;
  }

  /** Of a few nobody need ask how old they are: they are on their way. */
  async #backlog() {
    const records = this.outbox.status.waiting;
    if (records <= FEW_WAITING) return { records, oldestAgeMs: 0 };
    return { records, oldestAgeMs: (await this.outbox.facts()).oldestAgeMs ?? 0 };
  }

  #recordsOf(sessionId: string, events: readonly TimedEvent[]): OutgoingRecord[] {
    const { agentId } = this;
    return events.map(({ occurredAt, event }) => ({ kind: 'event', agentId, sessionId, occurredAt, event }));
  }

  /** In the log, before the events themselves are stored. */
  #tell(sessionId: string, events: readonly TimedEvent[]): void {
    const { journal, carriesMany = false } = this.#options;
    if (journal === undefined) return;
    const known =
      this.#journals.get(sessionId) ?? new EventJournal(this.logger, journal, carriesMany ? sessionId : null);
    this.#journals.set(sessionId, known);
    known.tell(events);
    if (events.some(({ event }) => event.name === CUSTOM.sessionEnded)) this.#journals.delete(sessionId);
  }

  /** Each line of the log also goes to the dashboard. */
  #logged({ at, ...log }: LogEntry): void {
    void this.#sink.accept([{ kind: 'log', agentId: this.agentId, occurredAt: at, log }]);
  }

  #outboxChanged(status: OutboxStatus): void {
    this.#delivery.outboxChanged(status);
    if (status.trouble?.kind === 'fenced') this.#fenced(status.trouble.message);
  }

  #noticed(notice: OutboxNotice): void {
    if ('count' in notice) this.#lost += notice.count;
    this.#delivery.notice(notice);
    // Nothing is reported because of it: that record could be rejected for the same reason, and so on without end.
    if (notice.kind === 'quarantined') this.#rejected(notice.rejected);
  }

  #rejected(rejected: Extract<OutboxNotice, { kind: 'quarantined' }>['rejected']): void {
    for (const { code, sessionId } of rejected) {
      if (code === 'session_of_another_agent' && sessionId !== undefined) this.#foreign.add(sessionId);
    }
    const only = this.#only;
    if (only === null || !this.#foreign.has(only)) return;
    this.#isOver(
      `the session ${only} belongs to another agent; name another one with --session, or its agent with --agent`,
    );
  }

  /** Sessions of one that follows others' come one by one, so it is given time to find one of its own. */
  #ownsNothing(isSo: boolean): void {
    const now = performance.now();
    this.#ownsNothingSince = isSo ? (this.#ownsNothingSince ?? now) : null;
    if (this.#ownsNothingSince === null || now - this.#ownsNothingSince < OWNS_NOTHING_MS) return;
    this.#isOver('all of its sessions belong to other agents; stop their runner first, or name its agent with --agent');
  }

  async #watchAgent(source: Source): Promise<void> {
    const ask = source.reach?.bind(source);
    if (ask === undefined) return;
    const { say = () => {}, reach: terms = {} } = this.#options;
    this.#watch = new AgentWatch(await this.outbox.cursor(UNREACHABLE_CURSOR), {
      ...{ ...terms, ask, say },
      close: async (reason) => await source.lost?.(reason),
      openWork: () => this.#open,
      store: (cursor) => this.#sink.accept([], [cursor]),
      report: () => this.#status.now(),
      emit: (sessionId, events) => void this.#emit(sessionId, events, []),
      log: (message) => this.#log.warn(message),
    });
  }

  async #commandClient(): Promise<CommandClient> {
    const { agentId, outbox } = this;
    const log = this.logger.child('commands');
    return new CommandClient({
      endpoint: this.#options.endpoint,
      agentId,
      runnerId: this.#runner.id,
      startedAt: this.#runner.startedAt,
      seen: await SeenCommands.load(outbox, Date.now()),
      act: (command, again) => this.#act(command, again),
      onFenced: (message) => this.#fenced(message),
      onLink: (link) => {
        this.#delivery.linkChanged(link);
        this.#options.onLink?.(link);
        if (link.state !== 'connected') return;
        this.#reports.forget();
        outbox.kick();
      },
      onError: (message) => log.warn(message),
    });
  }

  async #act(command: Command, again: boolean): Promise<CommandOutcome> {
    const { id, type, sessionId } = command;
    const source = this.#source;
    if (type === 'log-level.set') return (await this.#level?.obey(command.body)) ?? BEFORE_SOURCE;
    if (source === null) return BEFORE_SOURCE;
    if (type === 'session.end' && this.#endsInOrder) return { state: 'done' };
    if (this.over.aborted) return failed(this.over.reason);
    const carries = source.sessions.some((session) => session.sessionId === sessionId);
    if (source.elsewhere !== undefined && sessionId !== null && !carries) return failed(source.elsewhere);
    const verb = source[HANDLER_NAMES[type]]?.bind(source) as
      | ((command: CommandOf<typeof type>, again: boolean) => Promise<CommandOutcome>)
      | undefined;
    if (verb === undefined) return failed(source.refusals?.[type] ?? `this agent does not understand "${type}"`);
    if (again && type !== 'message') {
      return failed('the runner was stopped while it worked on this; check what became of it');
    }
    this.#log.info(`${type} ${id}${again ? ', again' : ''}`);
    if (type === 'message') this.#owed.markDirty();
    const outcome = await (command.type === 'message'
      ? this.#carried.pass(
          command,
          () => source.sessions.find((session) => session.sessionId === sessionId),
          (files) => source.say?.(command, again, files) ?? Promise.resolve(BEFORE_SOURCE),
        )
      : verb(command, again));
    if (outcome.state === 'failed') this.#log.warn(`${type} ${id} failed: ${outcome.reason}`);
    if (type === 'message') this.#owed.markDirty();
    return outcome;
  }

  async #report(): Promise<void> {
    const about = await this.#about();
    const busy = [...this.#open].flatMap(([sessionId, { turn }]) => (turn === null ? [] : sessionId));
    await this.#cpu.look(new Set(busy), performance.now());
    // Behind the wait, and handed over in the same step: of a session that ends, its end comes last.
    const { sessions = [] } = this.#source ?? {};
    const now = Date.now();
    const own = sessions.filter(({ sessionId }) => !this.#foreign.has(sessionId));
    if (!this.#options.carriesMany) this.#ownsNothing(own.length < sessions.length && own.length === 0);
    const records = own.map((session) => this.#statusOf(session, about, now));
    const picked = this.#reports.pick(records, performance.now());
    this.#log.debug(`status: ${sessions.length} session(s), ${this.outbox.status.waiting} record(s) wait to be sent`);
    await this.#sink.accept(picked.length > 0 ? picked : [statusRecord(this.agentId, about, now)]);
  }

  /** The status of each session, and that of the agent alone. */
  async #about(): Promise<AgentStatus> {
    return {
      host: hostname(),
      ...this.#options.about,
      runner: this.#runner,
      everyMs: REPORT_EVERY_MS,
      ...(this.#source === null ? {} : supportedCommands(this.#source)),
      unreachable: this.#watch?.unreachable,
      outbox: { ...(await this.outbox.facts()), lost: this.#lost },
      logLevel: this.logger.level.get(),
      logSwitch: this.#level?.report,
      sessions: this.#source?.sessions.length ?? 0,
    };
  }

  #statusOf(facts: SessionFacts, about: AgentStatus, at: number): StatusRecord {
    const open = this.#open.get(facts.sessionId) ?? NOTHING_OPEN;
    const { sessionId } = facts;
    const told = {
      report: this.#desk.reportOf(sessionId),
      last: this.#watch?.activities(sessionId),
      cpuSeconds: this.#cpu.secondsOf(sessionId),
    };
    return statusRecord(this.agentId, about, at, { facts, open, ...told });
  }

  async #openControl(source: Source): Promise<void> {
    const { controlFile } = this.#options;
    if (controlFile === undefined) return;
    const [file, logger] = [controlFile(this.agentId), this.logger];
    const obligations = () => this.#desk.owed();
    this.#control = await openControl({ file, source, logger, obligations, callers: this.#callers });
  }

  #toolServer(sessionId: string): ToolServer | null {
    if (this.#control === null) return null;
    const ticket = this.#callers.ticketOf(sessionId);
    this.logger.redactor.learn(ticket);
    return toolServer(this.#control.url, ticket);
  }

  #fenced(message: string): void {
    this.#endsFor = 'another runner of this agent has taken over';
    this.#isOver(message);
  }

  #isEnded(reason: string): void {
    if (this.over.aborted) return;
    this.#endsFor = reason;
    this.#endsInOrder = true;
    this.#over.abort(reason);
    this.#log.info(reason);
  }

  #isOver(reason: string): void {
    if (this.over.aborted) return;
    this.#over.abort(reason);
    this.#log.error(reason);
  }
}

function failed(reason: string): CommandOutcome {
  return { state: 'failed', reason };
}
