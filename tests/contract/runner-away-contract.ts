import type { SessionSummary, TranscriptPage } from '@interlude/protocol/read-models';
import type { CommandFrame } from '@interlude/protocol/sse';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';
import { expectWithin } from '../support/timing';

/** How a server reports a lost runner, in real time: takes about 12 seconds. */
export function describeRunnerAwayContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`a lost runner, ${name}`, () => {
    const id = 'away-turn';
    let target: ServerTarget;
    let reader: FrameReader | null = null;
    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(async () => {
      await reader?.cancel().catch(() => {});
      await target.close();
    });

    async function connectRunner(): Promise<FrameReader> {
      const response = await target.get(`/api/v1/agents/${id}/commands?runner=r1&startedAt=1`);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const connected = new FrameReader(response.body);
      reader = connected;
      const frames = connected.frames as unknown as CommandFrame[];
      await connected.until(() => frames.some(({ event }) => event === 'up-to-date'));
      return connected;
    }

    test('a lost runner makes its turn unknown within 30 s, and working again when it returns', async () => {
      const session = async () => (await (await target.get(`/api/v1/sessions/${id}`)).json()).session as SessionSummary;
      const event = { type: 'RUN_STARTED', threadId: id, runId: 'r1' };
      await ingest(target, [record(1, { agentId: id, sessionId: id, event })], 1, id);
      const runner = await connectRunner();
      const fleet = await target.stream(`topic=fleet&topic=session:${id}&after=0`);
      const goneAt = Date.now();
      await runner.cancel();
      await fleet.until((frames) =>
        frames.some((frame) => frame.event === 'session' && frame.data.id === id && frame.data.away !== null),
      );
      expectWithin(Date.now() - goneAt, 30_000);
      const away = await session();
      expect(away).toMatchObject({ state: 'unknown', openTurnId: 'r1', away: { agentGoesOn: false } });
      expect(away.away?.since).toBeGreaterThanOrEqual(goneAt - 1_000);
      expect(away.away?.lastHeardAt).toBeLessThanOrEqual(goneAt);
      await connectRunner();
      expect(await session()).toMatchObject({ state: 'working', away: null, openTurnId: 'r1' });
      const page = (await (await target.get(`/api/v1/sessions/${id}/transcript`)).json()) as TranscriptPage;
      const items = page.turns.flatMap((turn) => turn.items);
      const codes = items.flatMap((item) => (item.kind === 'notice' ? [item.code] : []));
      expect(codes).toEqual(['runner-away', 'runner-back']);
    });
  });
}
