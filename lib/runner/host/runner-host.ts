import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { DeliveryJournal } from '../logger/delivery-journal';
import { EventJournal } from '../logger/event-journal';
import { type LevelSwitch, PersistentLevel } from '../logger/level-switch';
import type { LogEntry } from '../logger/logger';
import { createLogger, type Logger } from '../logger/logger';
import type { Redactor } from '../logger/redactor';
import { type ToolServer, toolServer } from '../mcp/agent-tools';
import type { OutboxNotice } from '../outbox/delivery';
import type { Outbox, OutboxOptions, OutboxStatus, OutgoingRecord } from '../outbox/outbox';
import type { Cursor } from '../outbox/statements';
import { AgentWatch, UNREACHABLE_CURSOR } from './agent-reachability';
import { AttachmentStore } from './attachment-store';
import { CommandClient, CommandDispatch, type CommandLink } from './command-client';
import { ContextRatio } from './context-ratio';

import { type ControlPort, openControl } from './control-port';
import { deliverFirstMessage, type FirstMessage } from './first-message';
import { McpTools } from './mcp-tools';
import { IN_FLIGHT_CURSORS, MessageDelivery } from './message-delivery';
import { fetchObligations, ObligationCache } from './obligations';
import { CpuSampler } from './process-lookup';
import { RecordSink } from './record-sink';
import { SeenCommands } from './seen-commands';
import type { Endpoint } from './server-request';
import { OpenWorkStore, SessionOwnership } from './session-state';
import type { SessionFacts, Source, SourceContext } from './source';
import { failed } from './source-commands';
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

export interface RunnerHostOptions {
  /** Source-specific fields of the status record, above all the kind. */
  about: AgentStatus & { kind: string };
  /** Log component for emitted events; without it they are not logged. */
  journal?: string | undefined;
  /** Prefixes the log lines of emitted events with the session. */
  hasManySessions?: boolean | undefined;
  /** Logs at the end of each session how many of its tool calls only gathered context. Default true. */
  logsContextRatio?: boolean;
  /** For messages about an outage: `the agent continues`. */
  meanwhile: string;
  openOutbox: (listeners: OutboxListeners) => Promise<Outbox>;
  endpoint: Endpoint;
  dataDir: string;
  /** Path of the control file through which hooks find this runner; without it there is no control port. */
  controlFile?: (agentId: string) => string;
  /** Rule by which tool calls prove their session. By default, the process of the session must be an ancestor. */
  callers?: CallerRule | undefined;
  level: LevelSwitch | string | undefined;
  redactor?: Redactor;
  /** Log folder; default: `logs` in the data folder. */
  logDir?: string;
  runnerId?: string;
  startedAt?: number;
  onStatus?: ((status: OutboxStatus) => void) | undefined;
  onLink?: ((link: CommandLink) => void) | undefined;
  /** Prints to the terminal when an external agent becomes unreachable or reachable. */
  print?: (line: string) => void;
  reach?: { everyMs?: number; limitMs?: number };
}

export type OutboxListeners = Required<Pick<OutboxOptions, 'endpoint' | 'sendAtOpen' | 'onStatus' | 'onNotice'>>;

const FEW_WAITING = 50;

/**
 * Runs one agent with any number of sessions: owns the outbox, log, control port and command stream around a source.
 *
 * Ordering: a session is announced before its first event. Commands are accepted once the source can act on them. On
 * close: commands stop, the source ends, everything it emitted is stored, then sent.
 * Failure: without the server, only commands stop.
 */
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
  readonly #obligations: ObligationCache;
  readonly #tools: McpTools;
  readonly #callers: ToolCallers;
  readonly #calls = new RunningCalls();
  readonly #outputs: TaskOutputs;
  readonly #ratio: ContextRatio | null;
  readonly #open = new OpenWorkStore();
  readonly #ownership = new SessionOwnership();
  readonly #journals = new Map<string, EventJournal>();
  readonly #attachments: AttachmentStore;
  readonly #messages: MessageDelivery;
  readonly #dispatch: CommandDispatch;
  readonly #stopping = new AbortController();
  readonly #stopRequest = new AbortController();
  #source: Source | null = null;
  #commands: CommandClient | null = null;
  #control: ControlPort | null = null;
  #level: PersistentLevel | null = null;
  #watch: AgentWatch | null = null;
  /** The session of a single-session runner. */
  #onlySessionId: string | null = null;
  #lostRecords = 0;
  #endReason = 'the runner was stopped';
  #isCleanEnd = false;

  /** @throws ProcessLockedError when another process runs the agent */
  static async open(options: RunnerHostOptions): Promise<RunnerHost> {
    let host: RunnerHost | null = null;
    // A damaged outbox raises a notice before the log exists.
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
    this.#obligations = new ObligationCache(
      (signal) => fetchObligations(endpoint, agentId, signal),
      (message) => this.logger.child('obligations').debug(message),
    );
    this.#tools = new McpTools({
      emit: (sessionId, events) => void this.#emit(sessionId, events, []),
      store: (cursors) => void this.#sink.accept([], cursors),
      openWork: (sessionId) => this.#open.of(sessionId),
      obligations: () => this.#obligations.get(),
      caughtUp: async (sessionId) => await this.#source?.caughtUp?.(sessionId),
      replied: (sessionId, messageId) => this.#source?.replied?.(sessionId, messageId),
      reported: () => void this.#status.now(),
    });
    this.#callers = new ToolCallers({
      rule: options.callers,
      sessions: () => this.#source?.sessions ?? [],
      calls: this.#calls,
      openWork: (sessionId) => this.#open.of(sessionId),
      caughtUp: async (sessionId) => await this.#source?.caughtUp?.(sessionId),
      toolsOf: (sessionId) => this.#tools.toolsFor(sessionId),
    });
    const ofSessions = this.logger.child('session');
    this.#ratio =
      options.logsContextRatio === false
        ? null
        : new ContextRatio({ log: (message, about) => ofSessions.log('info', message, about) });
    this.#attachments = new AttachmentStore({
      endpoint,
      dir: join(dataDir, 'attachments'),
      signal: this.#stopping.signal,
      log: (message) => this.#log.warn(message),
      inFlight: async () => {
        const stored = await Promise.all(IN_FLIGHT_CURSORS.map((prefix) => outbox.cursors(prefix)));
        return stored.flatMap((cursors) => [...cursors.values()]).join('\n');
      },
    });
    this.#messages = new MessageDelivery(this.#attachments);
    this.#dispatch = new CommandDispatch({
      source: () => this.#source,
      ending: ({ type }) => {
        if (type === 'session.end' && this.#isCleanEnd) return { state: 'done' };
        return this.stopSignal.aborted ? failed(this.stopSignal.reason) : null;
      },
      setLogLevel: (body) => this.#level?.apply(body),
      delivery: this.#messages,
      onMessage: () => this.#obligations.markDirty(),
      log: this.#log,
    });
    this.#outputs = new TaskOutputs({
      store: (sessionId, events, cursors) => this.#sink.accept(this.#recordsOf(sessionId, events), [...cursors]),
      backlog: () => this.#backlog(),
      redactor: this.logger.redactor,
      log: (message) => this.logger.child('task-output').debug(message),
    });
  }

  /** Aborts when the host wants the runner to end. The reason is one line. */
  get stopSignal(): AbortSignal {
    return this.#stopRequest.signal;
  }

  /** Reason why the runner failed; null while it runs and after a clean end. */
  get failure(): string | null {
    return this.stopSignal.aborted && !this.#isCleanEnd ? String(this.stopSignal.reason) : null;
  }

  /** @param sessionId the session of a single-session runner */
  async start(
    openSource: (context: SourceContext) => Source | Promise<Source>,
    sessionId: string | null = null,
  ): Promise<void> {
    const { outbox, logger } = this;
    this.#onlySessionId = sessionId;
    await this.#open.restore(outbox);
    await this.#tools.restore(outbox);
    await this.#ratio?.restore(outbox);
    await this.#outputs.restore(outbox, this.#open.sessions);
    const source = await openSource(this.#context());
    this.#source = source;
    await this.#watchAgent(source);
    // Probes first, so that a dead agent is not reported as working.
    if (this.#open.sessions.size > 0) await this.#watch?.probe();
    this.#level = await PersistentLevel.restore(logger.level, outbox, (message) => this.#log.warn(message));
    logger.level.onSet(() => this.#status.changed());
    await this.#status.start();
    // Sends only now, so that stale status records of the previous runner are replaced first.
    outbox.kick();
    this.#commands = await this.#commandClient();
    await this.#openControl(source);
    if (source.deliver !== undefined) this.#obligations.start();
    await source.start();
    this.#watch?.start();
    this.#commands.start();
    this.#attachments.startCleanup();
  }

  /** Delivers the message given with `--prompt`. Resolves once the agent has it. */
  async sendFirstMessage(message: FirstMessage): Promise<void> {
    const say = this.#source?.deliver?.bind(this.#source);
    if (say === undefined) return;
    await deliverFirstMessage(message, { context: this.#context(), deliver: say });
    this.#obligations.markDirty();
  }

  /** @returns the number of unsent records */
  async close(deadlineMs: number, flushMs: number): Promise<{ waiting: number }> {
    try {
      await this.#commands?.pause();
      this.#stopping.abort();
      await this.#watch?.stop();
      await this.#source?.close(deadlineMs, this.#endReason);
      await this.#outputs.close();
      if (this.#options.about.agentGoesOn !== true) {
        void this.#sink.accept([], this.#ratio?.abandoned(this.#endReason, Date.now()));
      }
      await this.#control?.close();
      await this.#commands?.stop();
      this.#obligations.stop();
      if (this.#source !== null) await this.#status.stop();
      await this.#sink.close();
      return await this.outbox.stop({ flushMs });
    } finally {
      this.logger.close();
    }
  }

  /** Ends the agent immediately, for a caller that stops waiting for `close`. */
  hurry(): void {
    void this.#source?.close(0, this.#endReason);
  }

  #context(): SourceContext {
    const log = this.logger.child(this.#options.journal ?? this.#options.about.kind);
    return {
      emit: (sessionId, events, cursors) => this.#emit(sessionId, events, cursors ?? []),
      announceSession: async (sessionId, at = Date.now(), cursors = []) => {
        await this.#sink.accept(
          [this.#statusOf({ sessionId, attachments: null }, await this.#about(), at)],
          [...cursors],
        );
      },
      openWork: (sessionId) => this.#open.of(sessionId),
      cursors: (prefix) => this.outbox.cursors(prefix),
      resolveFiles: (sessionId, files) => this.#attachments.restore(sessionId, files),
      obligations: () => this.#tools.obligations(),
      callTool: (of) => this.#callers.callerIn(of),
      toolServer: (of) => this.#toolServer(of),
      report: (id, outcome) => void this.#commands?.report(id, outcome),
      changed: () => {
        this.#status.changed();
        this.#messages.recheck();
      },
      endRunner: (reason) => this.#endCleanly(reason),
      failRunner: (message) => this.#fail(message),
      log: (level, message, about) => log.log(level, message, about),
    };
  }

  #emit(sessionId: string, raw: readonly TimedEvent[], given: readonly Cursor[]): Promise<void> {
    const before = this.#open.of(sessionId);
    const { events: annotated, cursors: own } = this.#tools.annotate(sessionId, raw, before);
    const { events, cursors: counted } = this.#ratio?.count(sessionId, annotated) ?? { events: annotated, cursors: [] };
    const changed = this.#open.apply(sessionId, events);
    if (changed !== null) this.#status.changed();
    this.#calls.record(sessionId, events);
    this.#logEvents(sessionId, events);
    if (events.length > 0) this.#cpu.emitted(sessionId, performance.now());
    if (events.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR'))
      this.#obligations.markDirty();
    const cursors = [...given, ...own, ...counted, ...(changed === null ? [] : [changed])];
    const done = this.#sink.accept(this.#recordsOf(sessionId, events), cursors);
    if (this.#source?.isRecorded !== true) this.#outputs.observe(sessionId, events);
    return done;
  }

  /** The records of a short queue are in transit, so their age does not matter. */
  async #backlog() {
    const records = this.outbox.status.waiting;
    if (records <= FEW_WAITING) return { records, oldestAgeMs: 0 };
    return { records, oldestAgeMs: (await this.outbox.facts()).oldestAgeMs ?? 0 };
  }

  #recordsOf(sessionId: string, events: readonly TimedEvent[]): OutgoingRecord[] {
    const { agentId } = this;
    return events.map(({ occurredAt, event }) => ({ kind: 'event', agentId, sessionId, occurredAt, event }));
  }

  #logEvents(sessionId: string, events: readonly TimedEvent[]): void {
    const { journal, hasManySessions = false } = this.#options;
    if (journal === undefined) return;
    const known =
      this.#journals.get(sessionId) ?? new EventJournal(this.logger, journal, hasManySessions ? sessionId : null);
    this.#journals.set(sessionId, known);
    known.write(events);
    if (events.some(({ event }) => event.name === CUSTOM.sessionEnded)) this.#journals.delete(sessionId);
  }

  #logged({ at, ...log }: LogEntry): void {
    void this.#sink.accept([{ kind: 'log', agentId: this.agentId, occurredAt: at, log }]);
  }

  #outboxChanged(status: OutboxStatus): void {
    this.#delivery.outboxChanged(status);
    if (status.trouble?.kind === 'fenced') this.#fenced(status.trouble.message);
  }

  #noticed(notice: OutboxNotice): void {
    if ('count' in notice) this.#lostRecords += notice.count;
    this.#delivery.notice(notice);
    // No status report here: it could be rejected for the same reason, endlessly.
    if (notice.kind === 'quarantined') this.#fail(this.#ownership.rejected(notice.rejected, this.#onlySessionId));
  }

  async #watchAgent(source: Source): Promise<void> {
    const reach = source.reach?.bind(source);
    if (reach === undefined) return;
    const { print = () => {}, reach: terms = {} } = this.#options;
    this.#watch = new AgentWatch(await this.outbox.cursor(UNREACHABLE_CURSOR), {
      ...{ ...terms, reach, print },
      close: async (reason) => await source.lost?.(reason),
      openWork: () => this.#open.sessions,
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
      act: (command, again) => this.#dispatch.run(command, again),
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

  async #report(): Promise<void> {
    const about = await this.#about();
    const busy = [...this.#open.sessions].flatMap(([sessionId, { turn }]) => (turn === null ? [] : sessionId));
    await this.#cpu.sample(new Set(busy), performance.now());
    // Reads the sessions after the last await, so that the final status of a session comes last.
    const { sessions = [] } = this.#source ?? {};
    const now = Date.now();
    const own = sessions.filter(({ sessionId }) => !this.#ownership.isForeign(sessionId));
    if (!this.#options.hasManySessions) {
      this.#fail(this.#ownership.checked(sessions.length, sessions.length - own.length, performance.now()));
    }
    const records = own.map((session) => this.#statusOf(session, about, now));
    const picked = this.#reports.pick(records, performance.now());
    this.#log.debug(`status: ${sessions.length} session(s), ${this.outbox.status.waiting} unsent record(s)`);
    await this.#sink.accept(picked.length > 0 ? picked : [statusRecord(this.agentId, about, now)]);
  }

  /** Status fields that all sessions share. */
  async #about(): Promise<AgentStatus> {
    return {
      host: hostname(),
      ...this.#options.about,
      runner: this.#runner,
      everyMs: REPORT_EVERY_MS,
      ...(this.#source === null ? {} : supportedCommands(this.#source)),
      unreachable: this.#watch?.unreachable,
      outbox: { ...(await this.outbox.facts()), lost: this.#lostRecords },
      logLevel: this.logger.level.get(),
      logSwitch: this.#level?.report,
      sessions: this.#source?.sessions.length ?? 0,
    };
  }

  #statusOf(facts: SessionFacts, about: AgentStatus, at: number): StatusRecord {
    const { sessionId } = facts;
    const open = this.#open.of(sessionId);
    const details = {
      report: this.#tools.reportOf(sessionId),
      last: this.#watch?.lastActivityOf(sessionId),
      cpuSeconds: this.#cpu.secondsOf(sessionId),
    };
    return statusRecord(this.agentId, about, at, { facts, open, ...details });
  }

  async #openControl(source: Source): Promise<void> {
    const { controlFile } = this.#options;
    if (controlFile === undefined) return;
    const [file, logger] = [controlFile(this.agentId), this.logger];
    const obligations = () => this.#tools.obligations();
    this.#control = await openControl({ file, source, logger, obligations, callers: this.#callers });
  }

  #toolServer(sessionId: string): ToolServer | null {
    if (this.#control === null) return null;
    const ticket = this.#callers.ticketOf(sessionId);
    this.logger.redactor.addSecret(ticket);
    return toolServer(this.#control.url, ticket);
  }

  #fenced(message: string): void {
    this.#endReason = 'another runner of this agent has taken over';
    this.#fail(message);
  }

  #endCleanly(reason: string): void {
    if (this.stopSignal.aborted) return;
    this.#endReason = reason;
    this.#isCleanEnd = true;
    this.#stopRequest.abort(reason);
    this.#log.info(reason);
  }

  #fail(reason: string | null): void {
    if (reason === null || this.stopSignal.aborted) return;
    this.#stopRequest.abort(reason);
    this.#log.error(reason);
  }
}
