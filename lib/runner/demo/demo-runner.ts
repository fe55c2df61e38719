import { randomUUID } from 'node:crypto';
import type { Command } from '@/lib/protocol/commands';
import type { CommandsTaken } from '@/lib/protocol/takes';
import { CommandClient } from '@/lib/runner/commands/command-client';
import { type CommandOutcome, SeenCommands } from '@/lib/runner/commands/seen-commands';
import { REPORT_EVERY_MS, StatusReporter } from '@/lib/runner/host/status-reporter';
import { versionsWith } from '@/lib/runner/host/versions';
import { DeliveryJournal } from '@/lib/runner/logger/delivery-journal';
import { KeptLevel } from '@/lib/runner/logger/kept-level';
import type { Logger } from '@/lib/runner/logger/logger';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import { outboxFacts } from '@/lib/runner/outbox/facts';
import type { Outbox, OutboxStatus, OutgoingRecord } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';

/**
 * What stands around an agent of the demo, as around every agent: it says how it is, and listens for commands. Its log
 * level can be turned; a recording does nothing else that people ask for, and says so.
 *
 * Ordering: it listens once its level is known. At the end it takes no command any more, then says how it is once more.
 * Failure: without the server it goes on; what it says waits in the outbox.
 */
export interface DemoRunnerOptions {
  agentId: string;
  outbox: Outbox;
  endpoint: Endpoint;
  logger: Logger;
  /** Who of the demo does what people ask for. */
  instead: NonNullable<CommandsTaken['instead']>;
  /** Another runner has taken this agent over; why it can't go on, in one line. */
  onOver: (reason: string) => void;
}

export class DemoRunner {
  readonly #options: DemoRunnerOptions;
  readonly #id = randomUUID();
  readonly #startedAt = Date.now();
  readonly #status: StatusReporter;
  readonly #log: Logger;
  readonly #delivery: DeliveryJournal;
  #level: KeptLevel | null = null;
  #commands: CommandClient | null = null;
  #sessionId: string | null = null;

  constructor(options: DemoRunnerOptions) {
    this.#options = options;
    const { outbox, logger } = options;
    this.#log = logger.child('commands');
    this.#delivery = new DeliveryJournal({ logger, meanwhile: 'the recording goes on' });
    this.#status = new StatusReporter({
      report: async () => {
        const at = this.#sessionId === null ? 'between two sessions' : `in session ${this.#sessionId}`;
        logger.child('demo').debug(`status: ${at}, ${outbox.status.waiting} record(s) wait to be sent`);
        await outbox.enqueue(await this.report(Date.now()));
      },
    });
  }

  async start(): Promise<void> {
    const { agentId, outbox, endpoint, logger, onOver } = this.#options;
    this.#level = await KeptLevel.restore(logger.level, outbox, (message) => this.#log.warn(message));
    logger.level.onSet(() => this.#status.changed());
    await this.#status.start();
    // Not before: what the demo before this one said of itself is not told any more.
    outbox.kick();
    this.#commands = new CommandClient({
      endpoint,
      agentId,
      runnerId: this.#id,
      startedAt: this.#startedAt,
      seen: await SeenCommands.load(outbox, Date.now()),
      act: (command) => this.#act(command),
      onFenced: onOver,
      onLink: (link) => {
        this.#delivery.linkChanged(link);
        if (link.state === 'connected') outbox.kick();
      },
      onError: (message) => this.#log.warn(message),
    });
    this.#commands.start();
  }

  outboxChanged(status: OutboxStatus): void {
    this.#delivery.outboxChanged(status);
  }

  outboxNotice(notice: OutboxNotice): void {
    this.#delivery.notice(notice);
  }

  /** The session that is played from here on; null: none is. */
  carry(sessionId: string | null): void {
    this.#sessionId = sessionId;
  }

  /** How it is, of the session that is played where one is. */
  async report(occurredAt: number): Promise<OutgoingRecord> {
    const { agentId, outbox, logger } = this.#options;
    const status = {
      kind: 'claude',
      source: 'demo',
      runner: { id: this.#id, pid: process.pid, startedAt: this.#startedAt },
      versions: versionsWith(null),
      everyMs: REPORT_EVERY_MS,
      outbox: await outboxFacts(outbox),
      logLevel: logger.level.get(),
      logSwitch: this.#level?.report,
      takes: ['log-level.set'],
      takesNot: REFUSALS,
      instead: this.#options.instead,
    } satisfies CommandsTaken & Record<string, unknown>;
    const sessionId = this.#sessionId === null ? {} : { sessionId: this.#sessionId };
    return { kind: 'status', agentId, ...sessionId, occurredAt, status };
  }

  async close(): Promise<void> {
    await this.#commands?.stop();
    await this.#status.stop();
  }

  async #act(command: Command): Promise<CommandOutcome> {
    if (command.type === 'log-level.set') {
      return (await this.#level?.obey(command.body)) ?? { state: 'failed', reason: 'the runner is still starting' };
    }
    const reason = REFUSALS[command.type];
    this.#log.info(`${command.type} ${command.id} refused: ${reason}`);
    return { state: 'failed', reason };
  }
}

const REFUSALS: Record<Exclude<Command['type'], 'log-level.set'>, string> = {
  message: 'this agent replays a recording, and nobody reads what it is sent',
  interrupt: 'this agent replays a recording, and its turns end where they ended then',
  'task.stop': 'this agent replays a recording, and its tasks end as they ended then',
  'permission.decision': 'this agent replays a recording, and goes on as it was told then',
  'question.answer': 'this agent replays a recording, and goes on as it was told then',
};
