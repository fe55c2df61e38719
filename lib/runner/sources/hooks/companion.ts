import { hostname } from 'node:os';
import type { AdapterOutput } from '@/lib/adapters/claude/claude-adapter';
import { type Fields, textOf } from '@/lib/adapters/claude/fields';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { Command } from '@/lib/protocol/commands';
import { CommandClient } from '@/lib/runner/commands/command-client';
import { type CommandOutcome, SeenCommands } from '@/lib/runner/commands/seen-commands';
import { ControlPort } from '@/lib/runner/control-port/control-port';
import { type HookFailure, logHookFailure } from '@/lib/runner/control-port/hook-failure';
import type { HookCall } from '@/lib/runner/control-port/routes';
import { type OwedReply, parseObligation, readObligations } from '@/lib/runner/host/read-obligations';
import { RecordSink } from '@/lib/runner/host/record-sink';
import { REPORT_EVERY_MS, StatusReporter } from '@/lib/runner/host/status-reporter';
import { versionsWith } from '@/lib/runner/host/versions';
import { DeliveryJournal } from '@/lib/runner/logger/delivery-journal';
import { KeptLevel } from '@/lib/runner/logger/kept-level';
import type { LogEntry } from '@/lib/runner/logger/log-line';
import type { Logger } from '@/lib/runner/logger/logger';
import { Snapshot } from '@/lib/runner/obligations/snapshot';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import { type OutboxFacts, outboxFacts } from '@/lib/runner/outbox/facts';
import type { Outbox, OutboxStatus, OutgoingRecord } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';
import { claimOf, routeHook } from './hook-router';
import { MessageInbox } from './message-inbox';
import { type MirrorState, parseMirrorState } from './mirror-state';
import { SessionMirror } from './session-mirror';
import { type SessionReport, SessionReports } from './session-reports';
import { isGone } from './terminal-process';

/**
 * The process beside interactive sessions of Claude Code: their hooks call it, it follows their transcripts.
 *
 * Ordering: the events of a session leave in the order of its transcript; sessions don't wait for each other.
 * Failure: killed, it goes on where it was when it is started again, also with what the agent did in between. Without
 * the server it collects; without it the agents work as if it had never been installed.
 */
export interface CompanionOptions {
  agentId: string;
  /** Follow only this session. */
  sessionId?: string | undefined;
  runnerId: string;
  startedAt: number;
  outbox: Outbox;
  endpoint: Endpoint;
  logger: Logger;
  controlFile: string;
  /** It can not go on; why, in one line. */
  onOver: (reason: string) => void;
}

const CURSOR = 'transcript:';
const LOOK_MS = 200;
const ALIVE_MS = 5_000;
const IN_TERMINAL = 'this session runs in a terminal';

export class Companion {
  readonly #options: CompanionOptions;
  readonly #log: Logger;
  readonly #delivery: DeliveryJournal;
  readonly #sink: RecordSink;
  readonly #status: StatusReporter;
  readonly #owed: Snapshot<OwedReply>;
  readonly #inbox = new MessageInbox();
  readonly #mirrors = new Map<string, SessionMirror>();
  readonly #reports = new SessionReports();
  #stored = new Map<string, string>();
  #commands: CommandClient | null = null;
  #control: ControlPort | null = null;
  #level: KeptLevel | null = null;
  #timers: NodeJS.Timeout[] = [];
  #lost = 0;
  #over = false;

  constructor(options: CompanionOptions) {
    this.#options = options;
    const { agentId, outbox, endpoint, logger } = options;
    this.#log = logger.child('hooks');
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
  }

  async start(): Promise<void> {
    const { agentId, runnerId, startedAt, outbox, endpoint, logger, controlFile } = this.#options;
    this.#stored = await outbox.cursors(CURSOR);
    // What went on while nobody looked is told now, and not at the next hook.
    for (const [name, value] of this.#stored) {
      const state = parseMirrorState(value);
      if (state !== null && !state.ended) this.#mirror(name.slice(CURSOR.length), state.file);
    }
    this.#level = await KeptLevel.restore(logger.level, outbox, (message) => this.#log.warn(message));
    logger.level.onSet(() => this.#status.changed());
    await this.#status.start();
    // Not before: what the companion before this one said of itself is not told any more.
    outbox.kick();
    this.#control = await ControlPort.open({
      file: controlFile,
      handlers: {
        hook: (call) => this.#hook(call),
        status: (state, about, at) => this.#selfReport(state, about, at),
        obligations: () => this.#owed.get(),
        sessionTurn: (about) => this.#selfReport('busy', about),
        userPrompt: (about) => this.#selfReport('busy', about),
        sessionEnd: (about) => this.#of(about)?.end('the terminal session was left'),
        hookFatal: (failure, about) => this.#hookFatal(failure, about),
        logLevel: logger.level,
      },
      onError: (message) => logger.child('control-port').warn(message),
    });
    const log = logger.child('commands');
    this.#commands = new CommandClient({
      endpoint,
      agentId,
      runnerId,
      startedAt,
      seen: await SeenCommands.load(outbox, Date.now()),
      act: (command, again) => this.#act(command, again),
      onFenced: (message) => this.#isOver(message),
      onLink: (link) => {
        this.#delivery.linkChanged(link);
        if (link.state !== 'connected') return;
        this.#reports.forget();
        outbox.kick();
      },
      onError: (message) => log.warn(message),
    });
    this.#owed.start();
    this.#commands.start();
    this.#timers = [setInterval(() => this.#look(), LOOK_MS), setInterval(() => void this.#lookForDead(), ALIVE_MS)];
    void this.#lookForDead();
    logger.redactor.learn(this.#control.secret);
    this.#log.info(`hooks find this companion at ${this.#control.url}`);
  }

  /** Each line of the log also goes to the dashboard. */
  logged({ at, ...log }: LogEntry): void {
    void this.#sink.accept([{ kind: 'log', agentId: this.#options.agentId, occurredAt: at, log }]);
  }

  outboxChanged(status: OutboxStatus): void {
    this.#delivery.outboxChanged(status);
  }

  outboxNotice(notice: OutboxNotice): void {
    if ('count' in notice) this.#lost += notice.count;
    this.#delivery.notice(notice);
    this.#status.changed();
  }

  /** @returns how many records wait for the next companion */
  async close(flushMs: number): Promise<{ waiting: number }> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#control?.close();
    // What the agent has been held with reaches it all the same: the next companion says so.
    for (const mirror of this.#mirrors.values()) {
      this.#inbox.refuse(mirror.sessionId, 'the companion was stopped', (messageId) => mirror.isInHand(messageId));
    }
    await this.#commands?.stop();
    this.#owed.stop();
    await Promise.all([...this.#mirrors.values()].map((mirror) => mirror.step()));
    await this.#status.stop();
    await this.#sink.close();
    return await this.#options.outbox.stop({ flushMs });
  }

  #hook(call: HookCall): string | Promise<string> {
    const answer = routeHook(call, {
      mirror: (sessionId, file) => this.#mirror(sessionId, file),
      owed: () => this.#owed.get(),
      inbox: this.#inbox,
      log: (level, message) => this.#log.log(level, message),
    });
    this.#status.changed();
    return answer;
  }

  #mirror(sessionId: string, file: string): SessionMirror | null {
    const known = this.#mirrors.get(sessionId);
    if (known) return known;
    if (this.#options.sessionId !== undefined && this.#options.sessionId !== sessionId) return null;
    const stored = this.#stored.get(CURSOR + sessionId);
    const mirror = new SessionMirror({
      sessionId,
      file,
      state: stored === undefined ? null : parseMirrorState(stored),
      emit: (outputs, state) => this.#emit(sessionId, outputs, state),
      onHandedOver: (messageIds) => this.#inbox.handedOver(messageIds),
      onTurnEnded: () => {
        const reason = `${IN_TERMINAL}, and its turn ended before the message could be put before it`;
        this.#inbox.refuse(sessionId, reason, (messageId) => mirror.isInHand(messageId));
        this.#owed.markDirty();
        this.#status.changed();
      },
      log: (level, message) => this.#log.log(level, message),
    });
    this.#mirrors.set(sessionId, mirror);
    this.#log.info(`session ${sessionId} is followed in ${file}`);
    return mirror;
  }

  #emit(sessionId: string, outputs: AdapterOutput[], state: MirrorState): Promise<void> {
    const { agentId } = this.#options;
    const records = outputs.map(
      ({ occurredAt, event }): OutgoingRecord => ({ kind: 'event', agentId, sessionId, occurredAt, event }),
    );
    const stored = this.#sink.accept(records, [{ name: CURSOR + sessionId, value: JSON.stringify(state) }]);
    if (outputs.some(({ event }) => event.type.startsWith('RUN_') || event.type === 'CUSTOM')) this.#status.changed();
    return stored;
  }

  #of(about: Fields): SessionMirror | null {
    return this.#mirrors.get(textOf(about.session_id) ?? textOf(about.sessionId) ?? '') ?? null;
  }

  #selfReport(state: string, about: Fields, at: number | null = null): void {
    const mirror = this.#of(about);
    if (mirror === null) return;
    const claim = claimOf(about, at);
    // The stop hook's own trap: its call before this one may have failed.
    if (state === 'idle') mirror.stopped(null, textOf(about.last_assistant_message), claim);
    else if (state === 'busy') mirror.prompted(claim);
    else if (state === 'compacting') mirror.report(state, claim);
    void mirror.step();
    this.#status.changed();
  }

  #hookFatal(failure: HookFailure, about: Fields): void {
    const { agentId, logger } = this.#options;
    const mirror = this.#of(about);
    logHookFailure(logger, failure, mirror?.sessionId ?? null);
    if (mirror === null) return;
    const { hook, error } = failure;
    const { text } = logger.redactor.redact('hooks', `The ${hook} hook failed (${error}). The agent goes on.`);
    const value = { text, tone: 'error', kind: 'hook_fatal' };
    const event = { type: 'CUSTOM', name: CUSTOM.notice, value };
    void this.#sink.accept([
      { kind: 'event', agentId, sessionId: mirror.sessionId, occurredAt: Date.now(), event } as OutgoingRecord,
    ]);
  }

  /** @param again a companion before this one began it, and may have put it before the agent */
  async #act(command: Command, again: boolean): Promise<CommandOutcome> {
    if (command.type === 'log-level.set') {
      return (await this.#level?.obey(command.body)) ?? { state: 'failed', reason: 'the runner is still starting' };
    }
    const mirror = this.#mirrors.get(command.sessionId ?? '');
    const messageId = command.type === 'message' ? command.body.messageId : null;
    // what the transcript says in the meantime is read first
    if (again) await mirror?.step();
    if (messageId !== null && mirror?.wasHandedOver(messageId)) return { state: 'delivered' };
    if (mirror === undefined || mirror.hasEnded) {
      return { state: 'failed', reason: `${IN_TERMINAL}, and it has ended there` };
    }
    this.#log.info(`${command.type} ${command.id} for ${mirror.sessionId}`);
    if (command.type === 'message') {
      this.#owed.markDirty();
      if (mirror.isBusy || mirror.isInHand(command.body.messageId)) return await this.#inbox.put(command);
      return this.#inbox.turnAway(
        command.body.messageId,
        `${IN_TERMINAL} and is idle: type there, or send again while a turn runs (it is put before the agent when the turn ends)`,
      );
    }
    return { state: 'failed', reason: ELSEWHERE[command.type] };
  }

  #look(): void {
    for (const mirror of this.#mirrors.values()) if (!mirror.isStill) void mirror.step();
  }

  async #lookForDead(): Promise<void> {
    for (const mirror of [...this.#mirrors.values()]) {
      const { process, hasEnded } = mirror;
      if (hasEnded || process === null || !(await isGone(process))) continue;
      // A hook may have told of another process in the meantime.
      if (mirror.process === process) mirror.end('the terminal’s process is gone');
    }
  }

  async #report(): Promise<void> {
    const { agentId, outbox, logger, runnerId, startedAt } = this.#options;
    const followed = [...this.#mirrors.values()].filter((mirror) => !mirror.hasEnded);
    const facts: OutboxFacts = await outboxFacts(outbox, this.#lost);
    const common = {
      kind: 'hooks',
      source: 'claude-terminal',
      host: hostname(),
      runner: { id: runnerId, pid: process.pid, startedAt },
      versions: versionsWith(null),
      everyMs: REPORT_EVERY_MS,
      agentGoesOn: true,
      takes: ['message', 'log-level.set'],
      takesNot: ELSEWHERE,
      outbox: facts,
      logLevel: logger.level.get(),
      logSwitch: this.#level?.report,
      sessions: followed.length,
    };
    const records = followed.map((mirror): SessionReport => {
      const { sessionId, selfReport, openRunId, tasks, requests, provider } = mirror;
      const agent = { state: 'running', pid: mirror.process?.pid ?? null, exitCode: null };
      const versions = versionsWith(provider);
      const status = { ...common, versions, process: agent, state: selfReport, openTurnId: openRunId, tasks, requests };
      return { kind: 'status', agentId, sessionId, occurredAt: Date.now(), status };
    });
    const alone: OutgoingRecord = { kind: 'status', agentId, occurredAt: Date.now(), status: common };
    const picked = this.#reports.pick(records, performance.now());
    await this.#sink.accept(picked.length > 0 ? picked : [alone]);
  }

  #isOver(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#log.error(reason);
    this.#options.onOver(reason);
  }
}

const ELSEWHERE: Record<Exclude<Command['type'], 'message' | 'log-level.set'>, string> = {
  interrupt: `${IN_TERMINAL}: press Esc there to interrupt it`,
  'task.stop': `${IN_TERMINAL}: its tasks are stopped there (/tasks)`,
  'permission.decision': `${IN_TERMINAL}: it asks for permission there, and only there can it be answered`,
  'question.answer': `${IN_TERMINAL}: its questions are answered there`,
};
