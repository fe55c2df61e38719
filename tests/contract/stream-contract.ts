import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Frame } from '@interlude/protocol/frames';
import { MAX_TOPICS } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idsOf } from '../support/frames';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** `GET /stream`. Each test has its own session, agent and producer. */
export function describeStreamContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`GET /stream, ${name}`, () => {
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
        id = `stream-${serial}`;
        seq = 0;
        await run();
      });

    /** Sends records of this test's agent in one request. @returns the position after them */
    async function send(...records: Record<string, unknown>[]): Promise<number> {
      const own = records.map((fields) => record(++seq, { agentId: id, sessionId: id, ...fields }));
      return Number((await ingest(target, own, 1, id)).position);
    }
    const event = (value: AgUiEvent, sessionId = id) => ({ sessionId, event: value });
    const mark = (value: number, sessionId = id) => event({ type: 'CUSTOM', name: 'marker', value }, sessionId);
    const log = (message: string) => ({ kind: 'log', log: { level: 'warn', component: 'mirror', message } });
    const events = (frames: Frame[]) =>
      frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data.event] : []));
    const marks = (frames: Frame[]) => events(frames).map(({ value }) => value);
    const position = async () => Number((await (await target.get('/api/v1/sessions')).json()).position);

    test('sends hello, missed events and up-to-date, then live events, each with its position', async () => {
      const before = await position();
      await send(mark(1), mark(2));
      const reader = await target.stream(`topic=session:${id}&after=${before}`);
      const { data } = await reader.frame('up-to-date');
      const live = await send(mark(3));
      const frames = await reader.until((all) => marks(all).length === 3);
      expect(frames.map((frame) => frame.event)).toEqual([
        'hello',
        'session-event',
        'session-event',
        'up-to-date',
        'session-event',
      ]);
      expect(frames[0]).toEqual({ event: 'hello', data: { resume: 'ok', position: String(before) } });
      expect(marks(frames)).toEqual([1, 2, 3]);
      const ids = idsOf(frames);
      expect(Number(ids[0])).toBeGreaterThan(before);
      expect(ids[1]).toBeGreaterThan(Number(ids[0]));
      expect(Number(data.position)).toBeGreaterThanOrEqual(Number(ids[1]));
      expect(ids[2]).toBeGreaterThan(Number(data.position));
      expect(ids[2]).toBeLessThanOrEqual(live);
    });

    test('sends an event with its session, agent, seq and both clocks', async () => {
      const after = await position();
      const sentAt = Date.now();
      await send({ ...mark(1), occurredAt: 1_700_000_000_000 });
      const reader = await target.stream(`topic=session:${id}&after=${after}`);
      const { data } = await reader.frame('session-event');
      expect(data).toEqual({
        sessionId: id,
        agentId: id,
        seq: 1,
        occurredAt: 1_700_000_000_000,
        receivedAt: expect.any(Number),
        event: { type: 'CUSTOM', name: 'marker', value: 1 },
      });
      expect(data.receivedAt).toBeGreaterThanOrEqual(sentAt);
    });

    test('sends a log line as it was written', async () => {
      const reader = await target.stream(`topic=logs:${id}`);
      await reader.frame('up-to-date');
      await send({ ...log('disk\nfull \u2028 \u001b[31mred'), occurredAt: 1_700_000_000_000 });
      expect((await reader.frame('log')).data).toEqual({
        agentId: id,
        line: 1,
        occurredAt: 1_700_000_000_000,
        level: 'warn',
        component: 'mirror',
        message: 'disk\nfull \u2028 \u001b[31mred',
      });
    });

    test('starts at the present without a position', async () => {
      await send(mark(1));
      const reader = await target.stream(`topic=session:${id}`);
      await reader.frame('up-to-date');
      await send(mark(2));
      expect(marks(await reader.until((all) => marks(all).length > 0))).toEqual([2]);
    });

    test('starts at the beginning with after=0', async () => {
      await send(mark(1));
      const reader = await target.stream(`topic=session:${id}&after=0`);
      await reader.frame('up-to-date');
      expect(marks(reader.frames)).toEqual([1]);
      expect(reader.frames[0]?.data).toEqual({ resume: 'ok', position: '0' });
    });

    test('prefers Last-Event-ID to after', async () => {
      await send(mark(1), mark(2), mark(3));
      const first = await target.stream(`topic=session:${id}&after=0`);
      await first.frame('up-to-date');
      const lastEventId = String(idsOf(first.frames)[1]);
      const again = await target.stream(`topic=session:${id}&after=0`, { 'last-event-id': lastEventId });
      await again.frame('up-to-date');
      expect(marks(again.frames)).toEqual([3]);
      expect(again.frames[0]?.data).toEqual({ resume: 'ok', position: lastEventId });
    });

    test('sends many topics in one order, each frame once, and no others', async () => {
      const after = await position();
      const topics = `topic=session:${id}-a&topic=session:${id}-b&topic=logs:${id}&topic=session:${id}-a`;
      const reader = await target.stream(`${topics}&after=${after}`);
      await reader.frame('up-to-date');
      await send(mark(1, `${id}-a`), log('x'), mark(2, `${id}-b`), mark(3, `${id}-c`), mark(4, `${id}-a`));
      await send(log('y'));
      const frames = await reader.until((all) => all.filter((frame) => frame.event === 'log').length === 2);
      expect(frames.flatMap((frame) => (frame.event === 'log' ? [frame.data.message] : marks([frame])))).toEqual([
        1,
        'x',
        2,
        4,
        'y',
      ]);
      const late = await target.stream(`${topics}&after=${after}`);
      await late.frame('up-to-date');
      expect(idsOf(late.frames)).toEqual(idsOf(frames));
    });

    test('replays the latest version of each changed fleet row once', async () => {
      const after = await position();
      await send(event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }));
      await send(event({ type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'the build' } }));
      await send(
        event({ type: 'CUSTOM', name: 'task:completed', value: { task_id: 't1', status: 'failed', exit_code: 3 } }),
        event({ type: 'RUN_FINISHED', threadId: id, runId: 'r1' }),
      );
      const reader = await target.stream(`topic=fleet&after=${after}`);
      await reader.frame('up-to-date');
      const isOurs = ({ event, data }: Frame) =>
        event === 'task' ? data.sessionId === id : (event === 'session' || event === 'agent') && data.id === id;
      const rows = reader.frames.filter(isOurs);
      expect(rows.map((frame) => frame.event).sort()).toEqual(['agent', 'session', 'task']);
      const [task] = rows.flatMap((frame) => (frame.event === 'task' ? [frame.data] : []));
      expect(task).toMatchObject({ id: 't1', description: 'the build', status: 'failed', exitCode: 3 });
      const [session] = rows.flatMap((frame) => (frame.event === 'session' ? [frame.data] : []));
      expect(session).toMatchObject({ id, agentId: id, turnCount: 1, openTurnId: null, runningTaskCount: 0 });
      const detail = await (await target.get(`/api/v1/sessions/${id}`)).json();
      expect(session).toEqual(detail.session);
    });

    test('leaves a client that resumes within a message with the right text', async () => {
      const content = (delta: string) => event({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta });
      await send(
        event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }),
        event({ type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' }),
        content('one '),
        content('two '),
      );
      const first = await target.stream(`topic=session:${id}&after=0`);
      await first.frame('up-to-date');
      const middle = idsOf(first.frames).at(-2);
      await send(content('three'), event({ type: 'TEXT_MESSAGE_END', messageId: 'm1' }));
      const again = await target.stream(`topic=session:${id}`, { 'last-event-id': String(middle) });
      await again.frame('up-to-date');
      const [whole, end] = events(again.frames);
      expect(whole).toMatchObject({ delta: 'one two three', metadata: { interlude: { whole: true } } });
      expect(end).toMatchObject({ type: 'TEXT_MESSAGE_END' });
      await first.until((all) => events(all).some(({ type }) => type === 'TEXT_MESSAGE_END'));
      expect(textOf(events(first.frames))).toBe('one two three');
    });

    test('sends a gap for a position beyond its own, then starts at the present', async () => {
      await send(mark(1));
      const reader = await target.stream(`topic=session:${id}`, { 'last-event-id': '9000000000000000' });
      const { data } = await reader.frame('hello');
      expect(data.resume).toBe('gap');
      expect(Number(data.position)).toBeGreaterThan(0);
      await reader.frame('up-to-date');
      await send(mark(2));
      expect(marks(await reader.until((all) => marks(all).length > 0))).toEqual([2]);
    });

    test('a stream can be resumed repeatedly at any position without gaps or duplicates', async () => {
      const after = await position();
      const read: number[] = [];
      let resumeAt = String(after);
      for (let round = 0; round < 10; round += 1) {
        const reader = await target.stream(`topic=session:${id}&after=${after}`, { 'last-event-id': resumeAt });
        await send(...Array.from({ length: 7 }, (_, index) => mark(round * 7 + index)));
        const frames = (await reader.until((all) => marks(all).length >= 3)).filter((frame) => frame.id !== undefined);
        await reader.cancel();
        read.push(...(marks(frames) as number[]));
        resumeAt = frames.at(-1)?.id ?? resumeAt;
      }
      expect(read).toEqual(Array.from(read, (_, index) => index));
      expect(read.length).toBeGreaterThanOrEqual(30);
    });

    test('accepts sessions and agents with any id', async () => {
      const odd = `${id}/ü:% \u{1f600}?&#"\\`;
      const reader = await target.stream(`topic=session:${encodeURIComponent(odd)}`);
      await reader.frame('up-to-date');
      await send(mark(1, odd));
      expect((await reader.frame('session-event')).data.sessionId).toBe(odd);
    });

    test('is never cached, transformed or buffered by intermediaries', async () => {
      const response = await target.get('/api/v1/stream?topic=fleet', { 'accept-encoding': 'gzip, deflate, br' });
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-cache, no-store, no-transform');
      expect(response.headers.get('x-accel-buffering')).toBe('no');
      expect(response.headers.get('content-encoding')).toBeNull();
      await response.body?.cancel();
    });

    test('refuses an invalid topic or position, and names the valid ones', async () => {
      const long = `session:${'x'.repeat(300)}`;
      for (const query of ['', 'topic=', 'topic=fleets', 'topic=session:', 'topic=:x', 'topic=logs', `topic=${long}`]) {
        const response = await target.get(`/api/v1/stream?${query}`);
        expect([query, response.status]).toEqual([query, 400]);
        const error = await errorOf(response);
        expect(error.code).toBe('invalid_argument');
        expect(error.message).toContain('topic=fleet, topic=session:<id> or topic=logs:<agentId>');
      }
      for (const after of ['x', '-1', '1.5', '01', '12345678901234567', ' 1', '0x1']) {
        const response = await target.get(`/api/v1/stream?topic=fleet&after=${encodeURIComponent(after)}`);
        expect([after, response.status]).toEqual([after, 400]);
        expect((await errorOf(response)).after).toBe(after);
      }
      const header = await target.get('/api/v1/stream?topic=fleet', { 'last-event-id': 'abc' });
      expect(header.status).toBe(400);
      expect((await errorOf(header)).message).toContain('Last-Event-ID');
    });

    test('limits the number of topics', async () => {
      const query = (count: number) => Array.from({ length: count }, (_, index) => `topic=session:${index}`).join('&');
      const response = await target.get(`/api/v1/stream?${query(MAX_TOPICS + 1)}`);
      expect(response.status).toBe(400);
      expect((await errorOf(response)).limit).toBe(MAX_TOPICS);
      const reader = await target.stream(query(MAX_TOPICS));
      await reader.frame('up-to-date');
    });
  });
}

/** The text a client ends with: deltas appended, whole texts replaced. */
function textOf(events: AgUiEvent[]): string {
  return events
    .filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    .reduce((text, { delta, metadata }) => (metadata?.interlude?.whole ? String(delta) : text + String(delta)), '');
}
