import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { EventJournal } from '@/lib/runner/logger/event-journal';
import type { Logger } from '@/lib/runner/logger/logger';
import { createOutboxLogger } from '@/lib/runner/logger/outbox-logger';
import type { Redactor } from '@/lib/runner/logger/redactor';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { Outbox } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';
import { play } from '@/lib/runner/replay/player';
import type { Recording } from '@/lib/runner/replay/recording';
import { DemoRunner, type DemoRunnerOptions } from './demo-runner';
import { type DemoAgent, restAfter } from './fleet';
import type { Rota } from './rota';

/**
 * One agent of the demo: it plays one recording after the other, each as a new session, along the path every real
 * agent's events take.
 *
 * Ordering: where the first recording begins in its middle, what lies before has the times it would have had, in the
 * log as in the session.
 * Failure: the session under way is noted in the outbox. When the demo is stopped, or starts again after it was killed,
 * that session is told that its agent has ended; it would otherwise look busy for ever.
 */
export interface DemoStage {
  agent: DemoAgent;
  recordings: Recording[];
  /** The one of the demo that answers. */
  instead: DemoRunnerOptions['instead'];
  /** Shared by all agents of the demo. */
  rota: Rota;
  outboxDir: string;
  logDir: string;
  /** INTERLUDE_LOG_LEVEL. */
  logLevel: string | undefined;
  redactor: Redactor;
  endpoint: Endpoint;
  speed: number;
  signal: AbortSignal;
  onStatus: (status: OutboxStatus) => void;
}

const CURSOR = 'demo';
/** How long the ends of sessions may take to reach a server that answers slowly. */
const GOODBYE_MS = 3_000;

/** @returns why it could not go on, or null when it was stopped */
export async function runDemoAgent(stage: DemoStage): Promise<string | null> {
  const { agent, endpoint, redactor, onStatus } = stage;
  const { agentId } = agent;
  let runner: DemoRunner | null = null;
  // An outbox that is found damaged says so before there is a log to write it to.
  const early: OutboxNotice[] = [];
  const outbox = await Outbox.open(join(stage.outboxDir, `demo-${agentId}.db`), {
    producerId: `demo-${agentId}/${randomBytes(6).toString('hex')}`,
    agentId,
    endpoint,
    sendAtOpen: false,
    onStatus: (status) => {
      onStatus(status);
      runner?.outboxChanged(status);
    },
    onNotice: (notice) => (runner === null ? early.push(notice) : runner.outboxNotice(notice)),
  });
  const logger = createOutboxLogger({ agentId, dir: stage.logDir, level: stage.logLevel, redactor }, outbox);
  const over = new AbortController();
  let overFor: string | null = null;
  runner = new DemoRunner({
    agentId,
    outbox,
    endpoint,
    logger,
    instead: stage.instead,
    onOver: (reason) => {
      overFor = reason;
      logger.child('demo').error(reason);
      over.abort();
    },
  });
  try {
    for (const notice of early) runner.outboxNotice(notice);
    await leave(outbox, agentId, logger);
    await runner.start();
    await playOn({ ...stage, signal: AbortSignal.any([stage.signal, over.signal]) }, outbox, runner, logger);
    runner.carry(null);
    await leave(outbox, agentId, logger);
    await runner.close();
    return overFor;
  } finally {
    await outbox.stop({ flushMs: GOODBYE_MS });
    logger.close();
  }
}

/** Session after session, until the signal. */
async function playOn(stage: DemoStage, outbox: Outbox, runner: DemoRunner, logger: Logger): Promise<void> {
  const { agent, recordings, rota, signal, speed } = stage;
  const { agentId } = agent;
  const log = logger.child('demo');
  for (let round = 0; !signal.aborted; round += 1) {
    const recording = recordings[round % recordings.length] as Recording;
    const sessionId = `${agentId}-${randomBytes(4).toString('hex')}`;
    const skipToMs = round === 0 ? agent.beginsAtMs : 0;
    const arrivedAt = Math.round(Date.now() - skipToMs / speed);
    runner.carry(sessionId);
    const arrival = await runner.report(arrivedAt);
    const from = skipToMs === 0 ? '' : `, from ${skipToMs / 1_000} s into it`;
    const how = speed === 1 ? '' : `, at ${speed} times its speed`;
    log.log('info', `plays the recording ${recording.name} as session ${sessionId}${from}${how}`, { at: arrivedAt });
    await outbox.enqueue(arrival, { name: CURSOR, value: sessionId });
    const played = await play({
      recording,
      outbox,
      sessionId,
      agentId,
      fromLine: 0,
      speed,
      skipToMs,
      signal,
      cursor: (line) => ({ name: CURSOR, value: line === recording.lines.length ? '' : sessionId }),
      journal: new EventJournal(logger, 'recording'),
    });
    if (!played) return;
    runner.carry(null);
    const restMs = restAfter(agent, round) / speed;
    log.info(`the recording ${recording.name} is at its end; the next one begins in ${seconds(restMs)} at the latest`);
    await rota.rest(restMs, signal);
  }
}

/** Ends the session that was under way, if one was. */
async function leave(outbox: Outbox, agentId: string, logger: Logger): Promise<void> {
  const sessionId = await outbox.cursor(CURSOR);
  if (!sessionId) return;
  const event = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'the demo was stopped' } };
  const occurredAt = Date.now();
  logger.child('demo').info(`ends session ${sessionId} before its recording is at its end`);
  new EventJournal(logger, 'recording').tell([{ occurredAt, event }]);
  await outbox.enqueue({ kind: 'event', agentId, sessionId, occurredAt, event }, { name: CURSOR, value: '' });
}

function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(1))} s`;
}
