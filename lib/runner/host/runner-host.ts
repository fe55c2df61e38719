import type { Command } from '@/lib/protocol/commands';
import { CommandClient } from '@/lib/runner/commands/command-client';
import { type CommandOutcome, SeenCommands } from '@/lib/runner/commands/seen-commands';
import { controlPath } from '@/lib/runner/control-port/control-file';
import { ControlPort } from '@/lib/runner/control-port/control-port';
import { logHookFailure } from '@/lib/runner/control-port/hook-failure';
import type { ControlHandlers } from '@/lib/runner/control-port/routes';
import { DeliveryJournal } from '@/lib/runner/logger/delivery-journal';
import { EventJournal } from '@/lib/runner/logger/event-journal';
import { KeptLevel } from '@/lib/runner/logger/kept-level';
import type { LogEntry } from '@/lib/runner/logger/log-line';
import type { Logger } from '@/lib/runner/logger/logger';
import { Snapshot } from '@/lib/runner/obligations/snapshot';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import type { Outbox, OutboxStatus, OutgoingRecord } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';
import { latestOwed, type OwedReply, parseObligation, readObligations } from './read-obligations';
import { RecordSink } from './record-sink';
import type { Source, SourceSurroundings } from './source';
import { REPORT_EVERY_MS, StatusReporter } from './status-reporter';
import { versionsWith } from './versions';

/**
 * The runner of one agent: everything that stands around a source, started and ended in order.
 *
 * Ordering: the session is told of before anything happens in it; commands are taken once the source can act on them.
 * At the end no command is taken any more, the source ends, everything it said is stored, and then sent.
 * Failure: a server that is away stops nothing here but what people want of the agent.
 */
export interface RunnerHostOptions {
  /** The runner's kind, as the status record says it. */
  kind: string;
  agentId: string;
  sessionId: string;
  /** This process. */
  runnerId: string;
  startedAt: number;
  outbox: Outbox;
  endpoint: Endpoint;
  logger: Logger;
  dataDir: string;
  openSource: (surroundings: SourceSurroundings) => Source;
  /** What the status record says beside what the host knows. */
  about?: Record<string, unknown>;
  /** The runner can not go on; why, in one line. Called once. */
  onOver: (reason: string) => void;
}

export class RunnerHost {
  readonly #options: RunnerHostOptions;
  readonly #log: Logger;
  readonly #delivery: DeliveryJournal;
  readonly #sink: RecordSink;
  readonly #source: Source;
  readonly #status: StatusReporter;
  readonly #owed: Snapshot<OwedReply>;
  #commands: CommandClient | null = null;
  #control: ControlPort | null = null;
  #level: KeptLevel | null = null;
  #lost = 0;
  #over: string | null = null;
  #endsFor = 'the runner was stopped';

  constructor(options: RunnerHostOptions) {
    this.#options = options;
    const { agentId, sessionId, outbox, endpoint, logger } = options;
    this.#log = logger.child('host');
    this.#delivery = new DeliveryJournal({ logger, meanwhile: 'the agent goes on' });
    this.#sink = new RecordSink({
      enqueue: (records, cursors) => outbox.enqueue(records, cursors),
      onTrouble: (message) => process.stderr.write(`interlude: ${message}\n`),
    });
    this.#status = new StatusReporter({ report: () => this.#report() });
    this.#owed = new Snapshot({
      fetch: (signal) => readObligations(endpoint, agentId, signal),
      parse: parseObligation,
      onError: (message) => logger.child('obligations').debug(message),
    });
    const said = logger.child(options.kind);
    const journal = new EventJournal(logger, options.kind);
    this.#source = options.openSource({
      sessionId,
      emit: (events, cursors) => {
        journal.tell(events);
        void this.#sink.accept(
          events.map(
            ({ occurredAt, event }): OutgoingRecord => ({ kind: 'event', agentId, sessionId, occurredAt, event }),
          ),
          [...(cursors ?? [])],
        );
        if (events.some(({ event }) => event.type === 'RUN_FINISHED')) this.#owed.markDirty();
      },
      store: (cursors) => this.#sink.accept([], [...cursors]),
      report: (id, outcome) => void this.#commands?.report(id, outcome),
      latestObligation: (among) => latestOwed(this.#owed.get(), sessionId, among),
      changed: () => this.#status.changed(),
      gaveUp: (message) => this.#isOver(message),
      log: (level, message) => said.log(level, message),
    });
  }

  /** Each line of the log also goes to the dashboard. */
  logged({ at, ...log }: LogEntry): void {
    void this.#sink.accept([{ kind: 'log', agentId: this.#options.agentId, occurredAt: at, log }]);
  }

  outboxChanged(status: OutboxStatus): void {
    this.#delivery.outboxChanged(status);
    if (status.trouble?.kind === 'fenced') this.#fenced(status.trouble.message);
  }

  outboxNotice(notice: OutboxNotice): void {
    if ('count' in notice) this.#lost += notice.count;
    this.#delivery.notice(notice);
    this.#status.changed();
  }

  async start(): Promise<void> {
    const { agentId, runnerId, startedAt, outbox, endpoint, logger, dataDir } = this.#options;
    this.#level = await KeptLevel.restore(logger.level, outbox, (message) => this.#log.warn(message));
    logger.level.onSet(() => this.#status.changed());
    await this.#status.start();
    // Not before: what the runner before this one said of itself is not told any more.
    outbox.kick();
    const log = logger.child('commands');
    this.#commands = new CommandClient({
      endpoint,
      agentId,
      runnerId,
      startedAt,
      seen: await SeenCommands.load(outbox, Date.now()),
      act: (command, again) => this.#act(command, again),
      onFenced: (message) => this.#fenced(message),
      onLink: (link) => {
        this.#delivery.linkChanged(link);
        if (link.state === 'connected') outbox.kick();
      },
      onError: (message) => log.warn(message),
    });
    this.#control = await ControlPort.open({
      file: controlPath(dataDir, agentId),
      handlers: this.#controlHandlers(),
      onError: (message) => logger.child('control-port').warn(message),
    }).catch((error) => {
      this.#log.warn(`there is no control port: ${error instanceof Error ? error.message : error}`);
      return null;
    });
    logger.redactor.learn(this.#control?.secret);
    this.#owed.start();
    await this.#source.start();
    this.#commands.start();
  }

  /** @returns how many records wait for the next runner */
  async close(deadlineMs: number, flushMs: number): Promise<{ waiting: number }> {
    await this.#commands?.hold();
    await this.#source.close(deadlineMs, this.#endsFor);
    await this.#commands?.stop();
    this.#owed.stop();
    await this.#control?.close();
    await this.#status.stop();
    await this.#sink.close();
    return await this.#options.outbox.stop({ flushMs });
  }

  /** Somebody is out of patience with `close`. */
  hurry(): void {
    void this.#source.close(0, this.#endsFor);
  }

  async #act(command: Command, again: boolean): Promise<CommandOutcome> {
    const { sessionId } = this.#options;
    if (command.type === 'log-level.set') {
      return (await this.#level?.obey(command.body)) ?? { state: 'failed', reason: 'the runner is still starting' };
    }
    if (command.sessionId !== null && command.sessionId !== sessionId) {
      return { state: 'failed', reason: `the agent carries session ${sessionId} now; resume this one with --session` };
    }
    this.#log.info(`${command.type} ${command.id}${again ? ', again' : ''}`);
    const outcome = await this.#source.deliver(command, again);
    if (outcome.state === 'failed') this.#log.warn(`${command.type} ${command.id} failed: ${outcome.reason}`);
    if (command.type === 'message') this.#owed.markDirty();
    return outcome;
  }

  async #report(): Promise<void> {
    const { agentId, sessionId, kind, outbox, logger, about, runnerId, startedAt } = this.#options;
    const { process: agent, provider, ...observation } = this.#source.observation;
    const figures = await outbox.figures().catch(() => ({ oldestAt: null, poisoned: 0 }));
    const now = Date.now();
    const status = {
      kind,
      ...about,
      runner: { id: runnerId, pid: process.pid, startedAt },
      versions: versionsWith(provider),
      everyMs: REPORT_EVERY_MS,
      process: agent,
      ...observation,
      outbox: {
        depth: outbox.status.waiting,
        oldestAgeMs: figures.oldestAt === null ? null : Math.max(0, now - figures.oldestAt),
        poisoned: figures.poisoned,
        lost: this.#lost,
      },
      logLevel: logger.level.get(),
      logSwitch: this.#level?.report,
    };
    this.#log.debug(`status: ${agent.state}, ${outbox.status.waiting} record(s) wait to be sent`);
    await this.#sink.accept([{ kind: 'status', agentId, sessionId, occurredAt: now, status }]);
  }

  #controlHandlers(): ControlHandlers {
    const { logger, sessionId } = this.#options;
    const log = logger.child('hooks');
    const nothing = () => undefined;
    return {
      // The SDK says all of this itself; a hook of the user's that calls here is no error.
      hook: () => '',
      status: nothing,
      sessionTurn: nothing,
      userPrompt: nothing,
      sessionEnd: nothing,
      obligations: () => this.#owed.get(),
      hookFatal: (failure) => logHookFailure(logger, failure, sessionId),
      logLevel: log.level,
    };
  }

  #fenced(message: string): void {
    this.#endsFor = 'another runner of this agent has taken over';
    this.#isOver(message);
  }

  #isOver(reason: string): void {
    if (this.#over !== null) return;
    this.#over = reason;
    this.#log.error(reason);
    this.#options.onOver(reason);
  }
}
