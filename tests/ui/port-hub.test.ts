import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveConnection } from '@/components/live/live-connection';
import { PortHub } from '@/components/live/port-hub';
import type { HubMessage, PageMessage, Port } from '@/components/live/port-messages';
import { eventFrame, type ScriptedStream, scriptedFetch } from './scripted-stream';

/** A page's end of a port, with its received messages. */
class Page implements Port {
  onmessage: ((event: MessageEvent) => void) | null = null;
  readonly told: HubMessage[] = [];
  postMessage(message: unknown): void {
    this.told.push(message as HubMessage);
  }
  close(): void {}
  say(...messages: PageMessage[]): void {
    for (const data of messages) this.onmessage?.({ data } as MessageEvent);
  }
  positions(): string[] {
    return this.told.flatMap((message) => (message.type === 'frames' ? message.frames.map((frame) => frame.id) : []));
  }
}

describe('PortHub', () => {
  let script: ReturnType<typeof scriptedFetch>;
  let releases: Map<string, () => void>;
  let hub: PortHub;

  beforeEach(() => {
    vi.useFakeTimers();
    script = scriptedFetch();
    releases = new Map();
    const locks = {
      request: (name: string, granted: () => void) =>
        new Promise<void>((resolve) => {
          releases.set(name, () => {
            granted();
            resolve();
          });
        }),
    } as unknown as LockManager;
    hub = new PortHub(locks, (onState) => new LiveConnection({ onState, fetch: script.fetch }));
  });
  afterEach(() => vi.useRealTimers());

  const open = (...messages: PageMessage[]) => {
    const page = new Page();
    hub.attach(page);
    page.say({ type: 'open' }, ...messages);
    return page;
  };
  const settle = () => vi.advanceTimersByTimeAsync(20);
  const stream = (at: number) => script.streams[at] as ScriptedStream;

  it('serves every tab from one connection', async () => {
    const tabs = ['1', '2', '3'].map(() => open({ type: 'subscribe', key: 1, topic: 'session:s', after: '0' }));
    await settle();
    stream(0).accept().send(eventFrame('s', 1), eventFrame('s', 2));
    await settle();
    expect(script.streams).toHaveLength(1);
    for (const tab of tabs) expect(tab.positions()).toEqual(['1', '2']);
  });

  it('sends the connection state to a later tab', async () => {
    open({ type: 'subscribe', key: 1, topic: 'fleet', after: '0' });
    await settle();
    stream(0)
      .accept()
      .send({ event: 'up-to-date', data: { position: '1' } });
    await settle();
    const late = open();
    expect(late.told.at(-1)).toMatchObject({ type: 'state', state: { status: 'live' } });
  });

  it('forgets a tab when its lock is released', async () => {
    const tab = open({ type: 'lock', name: 'tab' }, { type: 'subscribe', key: 1, topic: 'session:s', after: '0' });
    await settle();
    stream(0).accept();
    releases.get('tab')?.();
    stream(0).send(eventFrame('s', 1));
    await settle();
    expect(tab.positions()).toEqual([]);
  });

  it('forgets a tab without a lock that misses its pings, and takes it back when it wakes', async () => {
    const tab = open({ type: 'subscribe', key: 1, topic: 'session:s', after: '0' });
    await vi.advanceTimersByTimeAsync(100_000);
    tab.say({ type: 'wake' });
    expect(tab.told.at(-1)).toEqual({ type: 'unknown' });
    tab.say({ type: 'open' }, { type: 'subscribe', key: 1, topic: 'session:s', after: '0' });
    await settle();
    (script.streams.at(-1) as ScriptedStream).accept().send(eventFrame('s', 1));
    await settle();
    expect(tab.positions()).toEqual(['1']);
  });

  it('keeps a tab that answers its pings', async () => {
    const tab = open({ type: 'subscribe', key: 1, topic: 'session:s', after: '0' });
    for (let round = 0; round < 6; round++) {
      await vi.advanceTimersByTimeAsync(20_000);
      tab.say({ type: 'pong' });
    }
    expect(tab.told.some((message) => message.type === 'unknown')).toBe(false);
  });
});
