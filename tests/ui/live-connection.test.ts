import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ConnectionState } from '@/components/live/connection-state';
import { LiveConnection } from '@/components/live/live-connection';
import type { RowFrame } from '@/components/live/row-frame';
import { eventFrame, type ScriptedStream, scriptedFetch } from './scripted-stream';

function reader() {
  const positions: string[] = [];
  return {
    positions,
    resets: 0,
    frames(frames: RowFrame[]) {
      for (const frame of frames) positions.push(frame.id);
    },
    reset() {
      this.resets += 1;
    },
  };
}

describe('LiveConnection', () => {
  let script: ReturnType<typeof scriptedFetch>;
  let states: string[];
  let connection: LiveConnection;

  beforeEach(() => {
    vi.useFakeTimers();
    script = scriptedFetch();
    states = [];
    connection = new LiveConnection({
      fetch: script.fetch,
      random: () => 0.5,
      onState: (state: ConnectionState) => states.push(state.status),
    });
  });
  afterEach(() => {
    connection.close();
    vi.useRealTimers();
  });

  const settle = () => vi.advanceTimersByTimeAsync(20);
  const stream = (at: number) => script.streams[at] as ScriptedStream;

  it('opens one request for all topics, from the smallest position needed', async () => {
    connection.subscribe('session:s', '7', reader());
    connection.subscribe('fleet', '5', reader());
    await settle();
    expect(script.streams).toHaveLength(1);
    expect(stream(0)).toMatchObject({ topics: ['fleet', 'session:s'], after: '5' });
  });

  it('delivers to each reader what follows its own position, once and in order', async () => {
    const [early, late] = [reader(), reader()];
    connection.subscribe('session:s', '1', early);
    connection.subscribe('session:s', '3', late);
    await settle();
    stream(0).accept().send(eventFrame('s', 2), eventFrame('s', 3), eventFrame('s', 4));
    await settle();
    expect(early.positions).toEqual(['2', '3', '4']);
    expect(late.positions).toEqual(['4']);
  });

  it('is live only when it is up to date', async () => {
    connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0).accept().send(eventFrame('s', 2));
    await settle();
    expect(connection.state.status).toBe('connecting');
    stream(0).send({ event: 'up-to-date', data: { position: '2' } });
    await settle();
    expect(connection.state.status).toBe('live');
  });

  it('repeats nothing when another topic restarts the stream further back', async () => {
    const first = reader();
    connection.subscribe('session:s', '10', first);
    await settle();
    stream(0)
      .accept()
      .send(eventFrame('s', 11), { event: 'up-to-date', data: { position: '12' } });
    await settle();
    const second = reader();
    connection.subscribe('session:t', '4', second);
    await settle();
    expect(stream(0).aborted).toBe(true);
    expect(stream(1)).toMatchObject({ topics: ['session:s', 'session:t'], after: '4' });
    stream(1).accept().send(eventFrame('t', 5), eventFrame('s', 11), eventFrame('t', 12), eventFrame('s', 13));
    await settle();
    expect(first.positions).toEqual(['11', '13']);
    expect(second.positions).toEqual(['5', '12']);
    expect(states).toEqual(['live']);
  });

  it('delivers each buffered frame once to a later reader, even if the stream repeated some', async () => {
    connection.subscribe('session:s', '10', reader());
    await settle();
    stream(0).accept().send(eventFrame('s', 11), eventFrame('s', 12));
    await settle();
    connection.subscribe('session:t', '4', reader());
    await settle();
    stream(1).accept().send(eventFrame('s', 11), eventFrame('s', 12), eventFrame('s', 13));
    await settle();
    const later = reader();
    connection.subscribe('session:s', '10', later);
    expect(later.positions).toEqual(['11', '12', '13']);
  });

  it('leaves no hole when a topic restarts before its buffer while frames arrive', async () => {
    const first = reader();
    connection.subscribe('session:s', '10', first);
    await settle();
    stream(0)
      .accept()
      .send({ event: 'up-to-date', data: { position: '10' } });
    await settle();
    const second = reader();
    connection.subscribe('session:s', '5', second);
    // The old stream stays open until the new one is requested.
    stream(0).send(eventFrame('s', 11));
    await vi.advanceTimersByTimeAsync(1);
    await settle();
    expect(stream(1).after).toBe('5');
    stream(1).accept().send(eventFrame('s', 6), eventFrame('s', 11), eventFrame('s', 12));
    await settle();
    expect(second.positions).toEqual(['6', '11', '12']);
    expect(first.positions).toEqual(['11', '12']);
  });

  it('serves a view that is reopened soon without a new request', async () => {
    const unsubscribe = connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0).accept().send(eventFrame('s', 2), eventFrame('s', 3));
    await settle();
    unsubscribe();
    stream(0).send(eventFrame('s', 4));
    await settle();
    const again = reader();
    connection.subscribe('session:s', '2', again);
    await settle();
    expect(script.streams).toHaveLength(1);
    expect(again.positions).toEqual(['3', '4']);
  });

  it('buffers a few megabytes of a topic at most', async () => {
    const first = reader();
    connection.subscribe('session:s', '0', first);
    await settle();
    stream(0).accept();
    for (let index = 1; index <= 20; index += 1) {
      stream(0).send(eventFrame('s', index, { value: 'x'.repeat(500_000) }));
      await settle();
    }
    connection.subscribe('session:s', '19', reader());
    await settle();
    expect(script.streams).toHaveLength(1);
    const second = reader();
    connection.subscribe('session:s', '0', second);
    await settle();
    expect(stream(1).after).toBe('0');
    expect(second.positions).toEqual([]);
  });

  it('drops an unused topic after a while, and keeps the others without loss', async () => {
    const kept = reader();
    connection.subscribe('fleet', '1', kept);
    const unsubscribe = connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0)
      .accept()
      .send({ event: 'up-to-date', data: { position: '9' } });
    unsubscribe();
    await vi.advanceTimersByTimeAsync(45_000);
    expect(script.streams.at(-1)).toMatchObject({ topics: ['fleet'], after: '9' });
  });

  it('resumes after the last frame when the stream is cut, and reports it meanwhile', async () => {
    const r = reader();
    connection.subscribe('session:s', '1', r);
    await settle();
    stream(0)
      .accept()
      .send(eventFrame('s', 2), { event: 'up-to-date', data: { position: '2' } }, eventFrame('s', 3));
    await settle();
    stream(0).cut();
    await settle();
    expect(connection.state).toMatchObject({ status: 'reconnecting', attempt: 1 });
    await vi.advanceTimersByTimeAsync(500);
    expect(stream(1).after).toBe('3');
    stream(1)
      .accept()
      .send(eventFrame('s', 4), { event: 'up-to-date', data: { position: '4' } });
    await settle();
    expect(r.positions).toEqual(['2', '3', '4']);
    expect(connection.state).toMatchObject({ status: 'live', attempt: 0 });
  });

  it('ignores a frame that was cut off', async () => {
    const r = reader();
    connection.subscribe('session:s', '1', r);
    await settle();
    stream(0).accept().raw('id: 2\nevent: session-event\ndata: {"sessionId":"s"');
    await settle();
    stream(0).cut();
    await vi.advanceTimersByTimeAsync(600);
    expect(r.positions).toEqual([]);
    expect(stream(1).after).toBe('1');
  });

  it('waits longer after each failure, up to ten seconds, and not at all after wake()', async () => {
    connection.subscribe('session:s', '1', reader());
    await settle();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 7; attempt++) {
      stream(script.streams.length - 1).refuse(503);
      const before = script.streams.length;
      const from = Date.now();
      while (script.streams.length === before) await vi.advanceTimersByTimeAsync(5);
      waits.push(Math.round((Date.now() - from) / 250) * 250);
    }
    expect(waits).toEqual([500, 750, 1500, 3000, 6000, 7500, 7500].map((ms) => expect.closeTo(ms, -3)));
    stream(script.streams.length - 1).refuse(503);
    await settle();
    const before = script.streams.length;
    connection.wake();
    await vi.advanceTimersByTimeAsync(1);
    expect(script.streams).toHaveLength(before + 1);
  });

  /** Completes the connection at time 0 of `since()`. */
  const goLive = async () => {
    connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    const heardAt = Date.now();
    return { heardAt, since: () => Date.now() - heardAt };
  };

  it('counts a server as away after 25 silent seconds, but not for a heartbeat five seconds late', async () => {
    const { since } = await goLive();
    await vi.advanceTimersByTimeAsync(HEARTBEAT_MS + 5_000);
    stream(0).raw(': hb\n\n');
    await settle();
    const heardAt = Date.now() - 20;
    await vi.advanceTimersByTimeAsync(HEARTBEAT_MS + 5_000);
    expect(states).toEqual(['live']);
    while (connection.state.status === 'live') await vi.advanceTimersByTimeAsync(100);
    expect(since()).toBeLessThanOrEqual(HEARTBEAT_MS + 5_000 + 25_000);
    expect(stream(0).aborted).toBe(true);
    expect(connection.state.asOf).toBeGreaterThanOrEqual(heardAt - 20);
    expect(connection.state.asOf).toBeLessThanOrEqual(heardAt + 20);
  });

  it('measures silence across streams: opening one while the server is away does not hide it', async () => {
    const { since } = await goLive();
    await vi.advanceTimersByTimeAsync(20_000);
    connection.subscribe('session:t', '1', reader());
    await settle();
    expect(script.streams).toHaveLength(2);
    while (connection.state.status === 'live') await vi.advanceTimersByTimeAsync(100);
    expect(since()).toBeLessThanOrEqual(25_000);
    expect(stream(1).aborted).toBe(true);
  });

  it('detects a server that never answers the first request', async () => {
    connection.subscribe('session:s', '1', reader());
    await vi.advanceTimersByTimeAsync(25_000);
    expect(stream(0).aborted).toBe(true);
    expect(connection.state).toMatchObject({ status: 'reconnecting', asOf: null });
  });

  it('gives every further attempt the full time, and is live once one is answered', async () => {
    await goLive();
    while (script.streams.length < 2) await vi.advanceTimersByTimeAsync(100);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(script.streams).toHaveLength(2);
    stream(1)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    expect(states).toEqual(['live', 'reconnecting', 'live']);
    expect(connection.state.asOf).toBeNull();
  });

  it('delivers nothing twice when a silent server sends after all', async () => {
    const r = reader();
    connection.subscribe('session:s', '1', r);
    await settle();
    stream(0)
      .accept()
      .send(eventFrame('s', 2), { event: 'up-to-date', data: { position: '2' } });
    while (script.streams.length < 2) await vi.advanceTimersByTimeAsync(100);
    expect(stream(1).after).toBe('2');
    stream(1)
      .accept()
      .send(eventFrame('s', 2), eventFrame('s', 3), { event: 'up-to-date', data: { position: '3' } });
    await settle();
    expect(r.positions).toEqual(['2', '3']);
  });

  it('detects immediately that the machine slept or that its clock was set back', async () => {
    const { since } = await goLive();
    vi.setSystemTime(Date.now() + 3_600_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(connection.state.status).toBe('reconnecting');
    expect(since()).toBeGreaterThan(3_600_000);
    await vi.advanceTimersByTimeAsync(500);
    stream(1)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    vi.setSystemTime(Date.now() - 3_600_000);
    await vi.advanceTimersByTimeAsync(25_000);
    expect(connection.state.status).toBe('reconnecting');
  });

  it('checks at once when a sleeping page becomes visible', async () => {
    await goLive();
    vi.setSystemTime(Date.now() + 60_000);
    connection.wake();
    await vi.advanceTimersByTimeAsync(1);
    expect(connection.state.status).toBe('reconnecting');
    expect(script.streams).toHaveLength(2);
  });

  it('replaces a hopeless attempt on wake(), but not one that has just started', async () => {
    await goLive();
    while (script.streams.length < 2) await vi.advanceTimersByTimeAsync(100);
    connection.wake();
    await settle();
    expect(script.streams).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(5_000);
    connection.wake();
    await settle();
    expect(stream(1).aborted).toBe(true);
    expect(script.streams).toHaveLength(3);
  });

  it('asks the server when the browser reports the network as down', async () => {
    await goLive();
    connection.doubt();
    await settle();
    stream(1)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    expect(states).toEqual(['live']);
    connection.doubt();
    await settle();
    stream(2).lose();
    await settle();
    expect(states).toEqual(['live', 'reconnecting']);
  });

  it('reopens at once after a bye, without a state change', async () => {
    connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0)
      .accept()
      .send({ event: 'up-to-date', data: { position: '6' } }, { event: 'bye', data: { reason: 'planned' } });
    await settle();
    expect(stream(1).after).toBe('6');
    expect(states).toEqual(['live']);
  });

  it('resets its readers after a gap and reports the gap for a while', async () => {
    const r = reader();
    connection.subscribe('session:s', '1', r);
    await settle();
    stream(0)
      .accept('gap', '90')
      .send({ event: 'up-to-date', data: { position: '90' } });
    await settle();
    expect(r.resets).toBe(1);
    expect(connection.state.status).toBe('gap');
    await vi.advanceTimersByTimeAsync(21_000);
    expect(connection.state.status).toBe('live');
  });

  it('stops when signed out, until wake()', async () => {
    connection.subscribe('session:s', '1', reader());
    await settle();
    stream(0).refuse(401);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(connection.state.status).toBe('signed-out');
    expect(script.streams).toHaveLength(1);
    connection.wake();
    await settle();
    stream(1)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    expect(connection.state.status).toBe('live');
  });

  it('ignores frames of unknown kinds', async () => {
    const r = reader();
    connection.subscribe('session:s', '1', r);
    await settle();
    stream(0).accept().raw('id: 2\nevent: hologram\ndata: {}\n\n').send(eventFrame('s', 3));
    await settle();
    expect(r.positions).toEqual(['3']);
  });
});
