import type { Command } from '@interlude/protocol/commands';
import type { AgentSummary } from '@interlude/protocol/read-models';
import type { CommandFrame } from '@interlude/protocol/sse';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FrameReader } from '../support/frames';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

const LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'];

/** A runner's requested log level: set over HTTP, read from its stream, confirmed and shown. */
export function describeLogLevelContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`the log level of a runner, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;
    const readers: FrameReader[] = [];

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(async () => {
      await Promise.all(readers.map((reader) => reader.cancel().catch(() => {})));
      await target.close();
    });
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `level-${serial}`;
        seq = 0;
        await run();
      });

    const reportStatus = (status: object) =>
      ingest(target, [record(++seq, { kind: 'status', agentId: id, sessionId: id, status })], 1, id);
    const send = (method: string, path: string, body: unknown) =>
      target.send(path, {
        method,
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const put = (body: unknown, agentId = id) => send('PUT', `/api/v1/agents/${agentId}/log-level`, body);
    const get = async () => await (await target.get(`/api/v1/agents/${id}/log-level`)).json();
    const ack = (commandId: string, body: object) =>
      send('POST', `/api/v1/agents/${id}/commands/${commandId}/ack`, body);
    async function runner(query = ''): Promise<FrameReader> {
      const response = await target.get(`/api/v1/agents/${id}/commands${query}`);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const reader = new FrameReader(response.body);
      readers.push(reader);
      return reader;
    }
    async function commands(reader: FrameReader, count: number): Promise<Command[]> {
      const all = () => reader.frames as unknown as CommandFrame[];
      const sent = () => all().flatMap((frame) => (frame.event === 'command' ? [frame.data] : []));
      await reader.until(() => sent().length >= count);
      return sent();
    }

    test('is unknown until the runner reports it', async () => {
      expect((await target.get(`/api/v1/agents/${id}/log-level`)).status).toBe(404);
      await reportStatus({});
      expect(await get()).toMatchObject({ level: null, since: null, by: null, desired: null, levels: LEVELS });
      await reportStatus({ logLevel: 'warn', logSwitch: { by: 'control-port', until: 5, base: 'info' } });
      const reported = await get();
      expect(reported).toMatchObject({ level: 'warn', by: 'control-port', until: 5, base: 'info', desired: null });
      expect(reported.since).toBeGreaterThan(0);
    });

    test('is sent to the runner, confirmed by it, and shown in the fleet', async () => {
      await reportStatus({ logLevel: 'info' });
      const stream = await target.stream('topic=fleet');
      const reader = await runner('?runner=r1&startedAt=1');
      const response = await put({ level: 'debug', ttlSeconds: 60 });
      expect(response.status).toBe(202);
      const { commandId, state, desired } = await response.json();
      expect(state).toBe('queued');
      expect(desired).toMatchObject({ level: 'debug', requestedBy: 'operator', state: 'requested', reason: null });
      expect(desired.expiresAt - desired.requestedAt).toBe(60_000);
      const [command] = await commands(reader, 1);
      expect(command).toMatchObject({ id: commandId, type: 'log-level.set', sessionId: null });
      expect(command?.body).toMatchObject({ level: 'debug', by: 'operator', requestId: commandId, ttlSeconds: 60 });
      expect(await get()).toMatchObject({ level: 'info', desired });
      await ack(commandId, { state: 'done' });
      expect(await get()).toMatchObject({ level: 'info', desired: { ...desired, state: 'confirmed' } });
      await reportStatus({ logLevel: 'debug', logSwitch: { by: 'operator', until: null, base: 'info' } });
      const frames = await stream.until((all) =>
        all.some((frame) => frame.event === 'agent' && frame.data.id === id && frame.data.logLevel.level === 'debug'),
      );
      const states = frames.flatMap((frame) =>
        frame.event === 'agent' && frame.data.id === id ? [(frame.data as AgentSummary).logLevel.desired?.state] : [],
      );
      expect([...new Set(states)].slice(-2)).toEqual(['requested', 'confirmed']);
    });

    test('reverts after 15 minutes for debug and on demand for others, unless a duration is given', async () => {
      await reportStatus({});
      const limit = async (body: object) => {
        const { desired } = await (await put(body)).json();
        return desired.expiresAt === null ? null : (desired.expiresAt - desired.requestedAt) / 1_000;
      };
      expect(await limit({ level: 'debug' })).toBe(900);
      expect(await limit({ level: 'debug', ttlSeconds: 3_600 })).toBe(3_600);
      expect(await limit({ level: 'debug', ttlSeconds: null })).toBeNull();
      expect(await limit({ level: 'warn' })).toBeNull();
      expect(await limit({ level: 'warn', ttlSeconds: 5 })).toBe(5);
    });

    test('is no longer requested after it is reset', async () => {
      await reportStatus({});
      await put({ level: 'error' });
      const { commandId, desired } = await (await put({ level: null })).json();
      expect(desired).toMatchObject({ level: null, expiresAt: null, state: 'requested' });
      const [command, ...others] = await commands(await runner(), 1);
      expect(others).toEqual([]);
      expect(command?.body).toMatchObject({ level: null, requestId: commandId });
      await ack(commandId, { state: 'done' });
      expect(await get()).toMatchObject({ desired: null });
    });

    test('replaces an earlier request, which is not sent again', async () => {
      await reportStatus({});
      const first = await (await put({ level: 'debug' })).json();
      const second = await (await put({ level: 'warn' })).json();
      const [command] = await commands(await runner('?runner=r1&startedAt=1'), 1);
      expect(command?.id).toBe(second.commandId);
      const late = await ack(first.commandId, { state: 'done' });
      expect(await late.json()).toEqual({ commandId: first.commandId, state: 'failed' });
      expect(await get()).toMatchObject({ desired: { level: 'warn', state: 'requested' } });
    });

    test('shows the reason when the runner refuses it', async () => {
      await reportStatus({});
      const { commandId } = await (await put({ level: 'debug' })).json();
      await ack(commandId, { state: 'failed', reason: 'the log is somebody else’s' });
      expect(await get()).toMatchObject({
        desired: { level: 'debug', state: 'refused', reason: 'the log is somebody else’s' },
      });
    });

    test('is not confirmed by a fenced runner', async () => {
      await reportStatus({});
      const reader = await runner('?runner=old&startedAt=1');
      const { commandId } = await (await put({ level: 'debug' })).json();
      await commands(reader, 1);
      await runner('?runner=new&startedAt=2');
      const response = await ack(commandId, { state: 'done', runner: 'old', startedAt: 1 });
      expect([response.status, (await errorOf(response)).code]).toEqual([403, 'stale_epoch']);
      expect(await get()).toMatchObject({ desired: { state: 'requested' } });
    });

    test('is refused when unknown, with the list of levels', async () => {
      await reportStatus({});
      for (const body of [{ level: 'loud' }, { level: 'DEBUG' }, { level: 5 }, {}, [], 'debug', { ttlSeconds: 5 }]) {
        const response = await put(body);
        const error = await errorOf(response);
        expect([response.status, error.code, error.levels]).toEqual([400, 'invalid_argument', LEVELS]);
        expect(error.message).toContain('debug, info, warn, error, fatal');
      }
      const bad = [
        { ttlSeconds: 0 },
        { ttlSeconds: 1.5 },
        { ttlSeconds: 604_801 },
        { ttlSeconds: '5' },
        { loud: true },
      ];
      for (const rest of bad) expect((await put({ level: 'info', ...rest })).status).toBe(400);
      expect((await put({ level: null, ttlSeconds: 5 })).status).toBe(400);
      expect(await get()).toMatchObject({ desired: null });
      expect((await put({ level: 'debug' }, 'nobody-here')).status).toBe(404);
    });
  });
}
