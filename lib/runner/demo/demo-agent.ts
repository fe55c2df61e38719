import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { Outbox, type OutgoingRecord } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';
import { play } from '@/lib/runner/replay/player';
import type { Recording } from '@/lib/runner/replay/recording';
import { type DemoAgent, restAfter } from './fleet';
import type { Rota } from './rota';

/**
 * One agent of the demo: it plays one recording after the other, each as a new session, along the path every real
 * agent's events take.
 *
 * Failure: the session under way is noted in the outbox. When the demo is stopped, or starts again after it was killed,
 * that session is told that its agent has ended; it would otherwise look busy for ever.
 */
export interface DemoStage {
  agent: DemoAgent;
  recordings: Recording[];
  /** Shared by all agents of the demo. */
  rota: Rota;
  outboxDir: string;
  endpoint: Endpoint;
  speed: number;
  signal: AbortSignal;
  onStatus: (status: OutboxStatus) => void;
}

const CURSOR = 'demo';

export async function runDemoAgent(stage: DemoStage): Promise<void> {
  const { agent, recordings, rota, endpoint, signal, speed, onStatus } = stage;
  const { agentId } = agent;
  const outbox = await Outbox.open(join(stage.outboxDir, `demo-${agentId}.db`), {
    producerId: `demo-${agentId}/${randomBytes(6).toString('hex')}`,
    agentId,
    endpoint,
    onStatus,
  });
  try {
    await leave(outbox, agentId);
    for (let round = 0; !signal.aborted; round += 1) {
      const recording = recordings[round % recordings.length] as Recording;
      const sessionId = `${agentId}-${randomBytes(4).toString('hex')}`;
      const status = { kind: 'claude', source: 'demo' };
      const skipToMs = round === 0 ? agent.beginsAtMs : 0;
      const occurredAt = Math.round(Date.now() - skipToMs / speed);
      const arrival: OutgoingRecord = { kind: 'status', agentId, sessionId, occurredAt, status };
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
      });
      if (played) await rota.rest(restAfter(agent, round) / speed, signal);
    }
    await leave(outbox, agentId);
  } finally {
    await outbox.stop({ flushMs: 1_000 });
  }
}

/** Ends the session that was under way, if one was. */
async function leave(outbox: Outbox, agentId: string): Promise<void> {
  const sessionId = await outbox.cursor(CURSOR);
  if (!sessionId) return;
  const event = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'the demo was stopped' } };
  const record: OutgoingRecord = { kind: 'event', agentId, sessionId, occurredAt: Date.now(), event };
  await outbox.enqueue(record, { name: CURSOR, value: '' });
}
