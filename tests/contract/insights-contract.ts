import type { AgentDetail, SessionDetail } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, marker, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/**
 * Failures around an agent: listed with it and marked on its sessions until a person has seen them. `isBulk` adds a test
 * with 10,000 of them, which only the database makes slow.
 */
export function describeInsightsContract(
  name: string,
  makeTarget: () => Promise<ServerTarget>,
  { isBulk = false } = {},
): void {
  describe(`failures around an agent, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `insight-${serial}`;
        seq = 0;
        await run();
      });

    const write = (sessionId: string) => ingest(target, [marker(++seq, { agentId: id, sessionId })], 1, id);
    const ends = (sessionId: string) => {
      const event = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'left' } };
      return ingest(target, [record(++seq, { agentId: id, sessionId, event })], 1, id);
    };
    const fails = (insight: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => {
      const log = {
        level: 'fatal',
        component: 'hook:Stop',
        message: 'exit 3: read the input',
        insight: { signal: 'hook_fatal', source: 'Stop', ...insight },
        ...more,
      };
      return ingest(target, [record(++seq, { kind: 'log', agentId: id, sessionId: undefined, log })], 1, id);
    };
    const agent = async () => (await (await target.get(`/api/v1/agents/${id}`)).json()) as AgentDetail;
    const marks = async (sessionId: string) =>
      ((await (await target.get(`/api/v1/sessions/${encodeURIComponent(sessionId)}`)).json()) as SessionDetail).session
        .insightCount;
    const markSeen = (body: unknown, agentId = id) =>
      target.send(`/api/v1/agents/${agentId}/insights/seen`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });

    test('are detected in the log of a runner that reports only the death of its hook', async () => {
      await write(`${id}/1`);
      await fails({}, { insight: undefined });
      await fails({}, { insight: undefined, level: 'error' });
      const { insights } = await agent();
      expect(insights.map(({ source, detail }) => [source, detail])).toEqual([['Stop', 'exit 3: read the input']]);
      expect(await marks(`${id}/1`)).toBe(1);
    });

    test('are listed with the agent, and mark the session they name', async () => {
      await write(`${id}/1`);
      await write(`${id}/2`);
      await fails({ sessionId: `${id}/1` });
      const { agent: row, insights } = await agent();
      expect(row.insightCount).toBe(1);
      expect(insights).toEqual([
        {
          position: expect.any(String),
          agentId: id,
          sessionId: `${id}/1`,
          signal: 'hook_fatal',
          value: null,
          outcome: null,
          source: 'Stop',
          detail: 'exit 3: read the input',
          isFailure: true,
          occurredAt: expect.any(Number),
          seenAt: null,
        },
      ]);
      const { lines } = await (await target.get(`/api/v1/agents/${id}/logs`)).json();
      expect(lines.at(-1)).toMatchObject({ position: insights[0]?.position, level: 'fatal' });
      expect([await marks(`${id}/1`), await marks(`${id}/2`)]).toEqual([1, 0]);
    });

    test('failures mark every open session of the agent when they name none', async () => {
      const other = `${id}-other`;
      await write(`${id}/1`);
      await write(`${id}/2`);
      await write(`${id}/3`);
      await ends(`${id}/3`);
      await ingest(target, [marker(1, { agentId: other, sessionId: `${other}/1` })], 1, other);
      await fails();
      expect((await agent()).insights[0]?.sessionId).toBeNull();
      const all = await Promise.all([`${id}/1`, `${id}/2`, `${id}/3`, `${other}/1`].map(marks));
      expect(all).toEqual([1, 1, 0, 0]);
    });

    test('mark only the agent when they name an unknown session or another agent’s', async () => {
      const other = `${id}-other`;
      await write(`${id}/1`);
      await ingest(target, [marker(1, { agentId: other, sessionId: `${other}/1` })], 1, other);
      await fails({ sessionId: `${other}/1` });
      await fails({ sessionId: 'nobody knows' });
      const { agent: row, insights } = await agent();
      expect(row.insightCount).toBe(2);
      expect(insights.map(({ sessionId }) => sessionId)).toEqual([null, null]);
      expect([await marks(`${id}/1`), await marks(`${other}/1`)]).toEqual([0, 0]);
    });

    /** Marks the session's only failure as seen after `others` caused more that nobody has seen. */
    const leftAfterFirstSeen = async (others: () => Promise<unknown>) => {
      await write(`${id}/1`);
      await fails({ sessionId: `${id}/1` });
      const upTo = (await agent()).insights[0]?.position;
      await others();
      const { seen } = await (await markSeen({ upTo })).json();
      expect(seen).toBe(1);
      return [(await agent()).agent.insightCount, await marks(`${id}/1`)];
    };

    test('failures of unknown sessions don’t mark a session whose own failures are seen', async () => {
      const left = await leftAfterFirstSeen(async () => {
        await fails({ sessionId: 'nobody knows' });
        await fails({ sessionId: 7 });
      });
      expect(left).toEqual([2, 0]);
    });

    test('of other agents’ sessions don’t mark a session whose own failures are seen', async () => {
      const other = `${id}-other`;
      await ingest(target, [marker(1, { agentId: other, sessionId: `${other}/1` })], 1, other);
      const left = await leftAfterFirstSeen(() => fails({ sessionId: `${other}/1` }));
      expect(left).toEqual([1, 0]);
      expect(await marks(`${other}/1`)).toBe(0);
    });

    test('leave no mark on a session that had ended when they occurred', async () => {
      const left = await leftAfterFirstSeen(async () => {
        await ends(`${id}/1`);
        await fails();
        await write(`${id}/1`);
        const event = { type: 'CUSTOM', name: 'session:started', value: {} };
        await ingest(target, [record(++seq, { agentId: id, sessionId: `${id}/1`, event })], 1, id);
      });
      expect(left).toEqual([1, 0]);
    });

    test('mark a session only from its first accepted record on', async () => {
      const left = await leftAfterFirstSeen(async () => {
        await fails({ sessionId: `${id}/2` });
        await ingest(target, [record(++seq, { kind: 'event', agentId: id, sessionId: `${id}/2`, event: 7 })], 1, id);
        await fails({ sessionId: `${id}/2` });
        await write(`${id}/2`);
        await fails({ sessionId: `${id}/2` });
      });
      expect(left).toEqual([3, 0]);
      expect(await marks(`${id}/2`)).toBe(1);
      await markSeen({ upTo: (await agent()).insights[0]?.position });
      expect([(await agent()).agent.insightCount, await marks(`${id}/2`)]).toEqual([0, 0]);
    });

    /** Sends a log line with this insight. */
    const storeInsight = async (insight: unknown, more: Record<string, unknown> = {}) => {
      await fails({}, { level: 'info', component: 'context', message: 'as it is', insight, ...more });
      const { agent: row, insights, quarantine } = await agent();
      return { row, insight: insights[0], quarantined: quarantine.length };
    };

    test('failures come from any signal with a failed outcome or on an error line', async () => {
      await write(`${id}/1`);
      const failed = await storeInsight({
        signal: 'delivery',
        outcome: 'failed',
        source: 'outbox',
        value: 3,
        detail: 'No room',
      });
      expect(failed.insight).toMatchObject({
        ...{ signal: 'delivery', outcome: 'failed', source: 'outbox', value: 3, detail: 'No room', isFailure: true },
      });
      const grave = await storeInsight({ signal: 'disk', source: 'disk' }, { level: 'error' });
      expect(grave.insight).toMatchObject({ signal: 'disk', value: null, outcome: null, isFailure: true });
      await fails({ sessionId: `${id}/1` });
      const { session } = (await (await target.get(`/api/v1/sessions/${id}%2F1`)).json()) as SessionDetail;
      expect(session).toMatchObject({ insightCount: 3, otherFailureCount: 2 });
      expect((await agent()).agent).toMatchObject({ insightCount: 3, otherFailureCount: 2 });
      await markSeen({ upTo: failed.insight?.position });
      expect((await agent()).agent).toMatchObject({ insightCount: 2, otherFailureCount: 1 });
      await markSeen({ upTo: (await agent()).insights[0]?.position });
      expect((await agent()).agent).toMatchObject({ insightCount: 0, otherFailureCount: 0 });
      expect(await marks(`${id}/1`)).toBe(0);
    });

    test('exclude other signals, which are stored and mark nothing', async () => {
      await write(`${id}/1`);
      const { row, insight } = await storeInsight({ signal: 'context_ratio', value: 0.4, source: 'context' });
      expect(insight).toMatchObject({ signal: 'context_ratio', value: 0.4, detail: 'as it is', isFailure: false });
      expect(row.insightCount).toBe(0);
      expect(await marks(`${id}/1`)).toBe(0);
      expect(await (await markSeen({ upTo: insight?.position })).json()).toMatchObject({ seen: 0, unseen: 0 });
    });

    test('are not displaced by other signals; the newest of those are kept', async () => {
      await fails();
      const signal = (value: number) => ({
        ...{ kind: 'log', agentId: id, sessionId: undefined },
        log: { level: 'info', component: 'c', message: `${value}`, insight: { signal: 'tick', value } },
      });
      for (const from of [0, 1_200]) {
        const records = Array.from({ length: 1_200 }, (_, index) => record(++seq, signal(from + index)));
        await ingest(target, records, 1, id);
      }
      const { insights } = await agent();
      expect(insights.filter(({ isFailure }) => isFailure)).toHaveLength(1);
      expect(insights.filter(({ isFailure }) => !isFailure).map(({ value }) => value)).toEqual(
        Array.from({ length: 50 }, (_, index) => 2_399 - index),
      );
    });

    const bulkTest = isBulk ? test : () => {};
    bulkTest('don’t block ingest while they are marked as seen, for any number of failures and sessions', async () => {
      const many = (count: number, fields: (at: number) => object) =>
        Array.from({ length: count }, (_, index) => record(++seq, { agentId: id, ...fields(index) }));
      const event = { type: 'CUSTOM', name: 'x' };
      await ingest(
        target,
        many(1_000, (at) => ({ sessionId: `${id}/${at}`, event })),
        1,
        id,
      );
      const log = { level: 'error', component: 'c', message: 'it failed', insight: { signal: 'x' } };
      const { insight: oldest } = await storeInsight(log.insight, { level: 'error' });
      for (let times = 0; times < 2; times += 1) {
        await ingest(
          target,
          many(5_000, () => ({ kind: 'log', sessionId: undefined, log })),
          1,
          id,
        );
      }
      const ended: string[] = [];
      const marking = markSeen({ upTo: oldest?.position }).then(async (response) => {
        ended.push('looked');
        return await response.json();
      });
      await ingest(
        target,
        many(1, () => ({ sessionId: `${id}/7`, event })),
        1,
        id,
      );
      ended.push('written');
      const seen = await marking;
      expect(ended).toEqual(['written', 'looked']);
      expect(await marks(`${id}/7`)).toBe(seen.unseen);
    });

    test('insights are parsed from any value without quarantining their line', async () => {
      await write(`${id}/1`);
      const some = { signal: 'x', source: 'context', value: null, outcome: null, detail: 'as it is' };
      const cases: [unknown, object][] = [
        [
          { kind: 'hook_fatal', subject: 'Stop' },
          { ...some, signal: 'hook_fatal', source: 'Stop', isFailure: true },
        ],
        [
          { signal: 'x', value: 'high', outcome: 7 },
          { ...some, value: 'high', outcome: '7' },
        ],
        [
          { signal: 'x', value: { a: [1] }, source: ['s'] },
          { ...some, value: '{"a":[1]}', source: '["s"]' },
        ],
        [
          { signal: 'x', value: false, detail: 5 },
          { ...some, value: false, detail: '5' },
        ],
        [{ value: 1 }, { ...some, signal: 'unknown', value: 1 }],
        [
          { signal: ' ', source: '', detail: '' },
          { ...some, signal: 'unknown' },
        ],
        ['failed', { ...some, signal: 'unknown', value: 'failed' }],
        [[1, 2], { ...some, signal: 'unknown', value: '[1,2]' }],
        [{ signal: 'a\0b' }, { ...some, signal: 'a\uFFFDb' }],
        [{ signal: 's'.repeat(300) }, { ...some, signal: 's'.repeat(256) }],
        [
          { signal: 'x', value: 'v'.repeat(3_000) },
          { ...some, value: 'v'.repeat(2_000) },
        ],
      ];
      for (const [sent, kept] of cases) {
        const { insight, quarantined } = await storeInsight(sent);
        expect([sent, insight, quarantined]).toMatchObject([sent, kept, 0]);
      }
      const before = (await agent()).insights.length;
      await storeInsight(null);
      expect((await agent()).insights).toHaveLength(before);
      // No session can have a number as its id.
      await fails({ sessionId: 7 });
      expect((await agent()).insights[0]).toMatchObject({ sessionId: null });
      expect(await marks(`${id}/1`)).toBe(1);
    });

    test('have a placeholder for a hook without name and message', async () => {
      await fails({}, { insight: undefined, component: 'hook:', message: ' ' });
      expect((await agent()).insights).toMatchObject([{ source: 'unknown', detail: '(no detail)' }]);
    });

    test('are counted once when their record is repeated', async () => {
      await write(`${id}/1`);
      await fails({ sessionId: `${id}/1` });
      seq -= 1;
      await fails({ sessionId: `${id}/1` });
      expect((await agent()).agent.insightCount).toBe(1);
      expect(await marks(`${id}/1`)).toBe(1);
    });

    test('update the fleet when they arrive and when they are seen', async () => {
      await write(`${id}/1`);
      const { position: before } = await write(`${id}/1`);
      const reader = await target.stream(`topic=fleet&after=${before}`);
      const counts = () =>
        reader.frames.flatMap((frame) =>
          (frame.event === 'agent' && frame.data.id === id) ||
          (frame.event === 'session' && frame.data.id === `${id}/1`)
            ? [`${frame.event} ${(frame.data as { insightCount: number }).insightCount}`]
            : [],
        );
      await fails({ sessionId: `${id}/1` });
      await reader.until(() => counts().includes('agent 1') && counts().includes('session 1'));
      await markSeen({ upTo: (await agent()).insights[0]?.position });
      await reader.until(() => counts().at(-1) === 'agent 0' && counts().includes('session 0'));
      await reader.cancel();
    });

    test('are marked as seen up to a position, once', async () => {
      await write(`${id}/1`);
      await fails({ sessionId: `${id}/1` });
      await fails();
      await fails({ source: 'SessionEnd' });
      const { insights } = await agent();
      const upTo = insights[1]?.position;
      const response = await markSeen({ upTo });
      expect(response.status).toBe(200);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(await response.json()).toEqual({ seen: 2, unseen: 1, position: expect.any(String) });
      expect(await (await markSeen({ upTo })).json()).toMatchObject({ seen: 0, unseen: 1 });
      expect((await agent()).insights.map(({ source, seenAt }) => [source, seenAt !== null])).toEqual([
        ['SessionEnd', false],
        ['Stop', true],
        ['Stop', true],
      ]);
      expect((await agent()).agent.insightCount).toBe(1);
      expect(await marks(`${id}/1`)).toBe(1);
      expect(await (await markSeen({ upTo: insights[0]?.position })).json()).toMatchObject({ seen: 1, unseen: 0 });
      expect(await marks(`${id}/1`)).toBe(0);
    });

    test('quote a bounded part of their line, without a lone surrogate', async () => {
      await fails({}, { message: `x${'😀'.repeat(3_000)}` });
      const detail = (await agent()).insights[0]?.detail ?? '';
      expect(detail).toBe(`x${'😀'.repeat(999)}`);
    });

    test('are marked as seen only for a known agent and a valid position', async () => {
      await write(`${id}/1`);
      const refusals = [];
      for (const [body, agentId] of [
        [{ upTo: '5' }, 'nobody'],
        [{}, id],
        [{ upTo: -1 }, id],
        [{ upTo: '1', all: 1 }, id],
      ]) {
        const response = await markSeen(body, agentId as string);
        refusals.push([response.status, (await errorOf(response)).code]);
      }
      expect(refusals).toEqual([[404, 'not_found'], ...Array(3).fill([400, 'invalid_argument'])]);
    });
  });
}
