import { EMPTY_TRANSCRIPT } from '@interlude/protocol/projections/transcript';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readDraft, storeDraft } from '@/components/composer/draft-store';
import { OutgoingQueue, type SendOutcome } from '@/components/composer/outgoing-queue';
import { sentTexts } from '@/components/composer/sent-history';
import { withOutgoing } from '@/components/composer/with-outgoing';
import { aMessage, aTurn } from './rows';

/** An in-memory Storage. */
class MemoryStorage implements Storage {
  readonly #items = new Map<string, string>();
  isFull = false;
  get length() {
    return this.#items.size;
  }
  key = (at: number) => [...this.#items.keys()][at] ?? null;
  getItem = (key: string) => this.#items.get(key) ?? null;
  removeItem = (key: string) => void this.#items.delete(key);
  clear = () => this.#items.clear();
  setItem(key: string, value: string) {
    if (this.isFull) throw new Error('QuotaExceededError');
    this.#items.set(key, value);
  }
}

const SENT: SendOutcome = { kind: 'sent', messageId: 'm1' };
const AWAY: SendOutcome = { kind: 'unreachable', reason: 'away' };
const REFUSED: SendOutcome = { kind: 'refused', reason: 'it has ended' };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('an outgoing message', () => {
  let storage: MemoryStorage;
  let attempts: string[];
  let ids: number;
  beforeEach(() => {
    storage = new MemoryStorage();
    attempts = [];
    ids = 0;
  });

  function queue(answer: (text: string) => SendOutcome, sessionId = 's:1') {
    return new OutgoingQueue({
      sessionId,
      storage,
      send: async ({ clientId, text }) => {
        attempts.push(`${clientId} ${text}`);
        return answer(text);
      },
      newId: () => `c${++ids}`,
      now: () => ids,
    });
  }
  const states = (of: OutgoingQueue) => of.messages.map(({ text, state }) => `${text} ${state}`);

  it('is stored until the server has it', async () => {
    const outgoing = queue(() => SENT);
    outgoing.post('hello', null);
    expect([states(outgoing), storage.length]).toEqual([['hello sending'], 1]);
    await vi.runAllTimersAsync();
    expect([states(outgoing), storage.length]).toEqual([['hello sent'], 0]);
  });

  it('is retried with the same clientId, in the order of writing', async () => {
    let answer: SendOutcome = AWAY;
    const outgoing = queue(() => answer);
    outgoing.post('one', null);
    outgoing.post('two', null);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(attempts).toEqual(['c1 one', 'c1 one']);
    expect(states(outgoing)).toEqual(['one retrying', 'two sending']);
    answer = SENT;
    outgoing.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(attempts.slice(2)).toEqual(['c1 one', 'c2 two']);
    expect(states(outgoing)).toEqual(['one sent', 'two sent']);
    await vi.runAllTimersAsync();
    expect(attempts).toHaveLength(4);
  });

  it('is sent by the next page with the same clientId', async () => {
    const before = queue(() => AWAY);
    before.post('one', 'm0');
    await vi.advanceTimersByTimeAsync(0);
    vi.clearAllTimers();
    const next = queue(() => SENT);
    expect(next.messages).toMatchObject([{ clientId: 'c1', text: 'one', replyTo: 'm0', state: 'retrying' }]);
    expect(queue(() => SENT, 's').messages).toEqual([]);
    next.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(states(next)).toEqual(['one sent']);
  });

  it('does not block the next one when refused, and is resent with a new clientId', async () => {
    let ended = true;
    const outgoing = queue((text) => (text === 'one' && ended ? REFUSED : SENT));
    outgoing.post('one', null);
    outgoing.post('two', null);
    await vi.runAllTimersAsync();
    expect(states(outgoing)).toEqual(['one refused', 'two sent']);
    expect(queue(() => SENT).messages).toMatchObject([{ text: 'one', state: 'refused', reason: 'it has ended' }]);
    ended = false;
    outgoing.tryAgain('c1');
    await vi.runAllTimersAsync();
    expect(states(outgoing)).toEqual(['two sent', 'one sent']);
    expect(attempts.at(-1)).toBe('c3 one');
    expect(storage.length).toBe(0);
  });

  it('pauses when the sign-in ends, resumes on wake', async () => {
    let answer: SendOutcome = { kind: 'signed-out', reason: 'signed out' };
    const outgoing = queue(() => answer);
    outgoing.post('one', null);
    outgoing.post('two', null);
    await vi.runAllTimersAsync();
    expect([states(outgoing), attempts]).toEqual([['one signed-out', 'two sending'], ['c1 one']]);
    answer = SENT;
    outgoing.wake();
    await vi.runAllTimersAsync();
    expect(attempts.slice(1)).toEqual(['c1 one', 'c2 two']);
  });

  it('is not resent once the transcript shows it', async () => {
    const outgoing = queue(() => AWAY);
    outgoing.post('one', null);
    await vi.advanceTimersByTimeAsync(0);
    outgoing.discardShown(({ clientId }) => clientId === 'c1');
    await vi.runAllTimersAsync();
    expect([outgoing.messages, attempts, storage.length]).toEqual([[], ['c1 one'], 0]);
  });

  it('is removed when another tab has settled it', async () => {
    const outgoing = queue(() => AWAY);
    outgoing.post('one', null);
    await vi.advanceTimersByTimeAsync(0);
    outgoing.removedElsewhere('c1');
    expect(outgoing.messages).toEqual([]);
  });

  it('is sent even if the browser can’t store', async () => {
    storage.isFull = true;
    const outgoing = queue(() => SENT);
    outgoing.post('one', null);
    await vi.runAllTimersAsync();
    expect(states(outgoing)).toEqual(['one sent']);
  });
});

describe('the transcript with outgoing messages', () => {
  const message = {
    clientId: 'c1',
    text: 'hello',
    replyTo: null,
    at: 5,
    state: 'sending' as const,
    messageId: null,
    reason: null,
  };
  const shown = (fields: object) => ({
    ...EMPTY_TRANSCRIPT,
    turns: [aTurn({ items: [aMessage({ role: 'user', text: 'hello', ...fields })] })],
  });

  it('shows them at the end, outside any turn', () => {
    const { turns } = withOutgoing(EMPTY_TRANSCRIPT, [message]);
    expect(turns).toMatchObject([{ kind: 'none', items: [{ text: 'hello', role: 'user', delivery: 'queued' }] }]);
  });

  it('shows none twice, whether the response or the event came first', () => {
    const byClient = shown({ id: 'm9', clientId: 'c1' });
    expect(withOutgoing(byClient, [message])).toBe(byClient);
    const byMessage = shown({ id: 'm9' });
    expect(withOutgoing(byMessage, [{ ...message, state: 'sent', messageId: 'm9' }])).toBe(byMessage);
    expect(withOutgoing(byMessage, [message]).turns).toHaveLength(2);
  });

  it('recalls distinct texts, newest first', () => {
    const turns = [
      aTurn({ items: [aMessage({ role: 'user', text: 'a' }), aMessage({ text: 'answer' })] }),
      aTurn({ items: [aMessage({ role: 'user', text: 'b' })] }),
    ];
    expect(sentTexts(turns, [{ ...message, text: 'a' }])).toEqual(['a', 'b']);
  });
});

describe('a draft', () => {
  it('is stored by session and removed when empty', () => {
    const storage = new MemoryStorage();
    storeDraft(storage, 's', { text: 'half', replyTo: 'm1' });
    expect(readDraft(storage, 's')).toEqual({ text: 'half', replyTo: 'm1' });
    expect(readDraft(storage, 't')).toEqual({ text: '', replyTo: null });
    storeDraft(storage, 's', { text: '', replyTo: null });
    expect(storage.length).toBe(0);
  });

  it('is empty if the stored value is invalid', () => {
    const storage = new MemoryStorage();
    storage.setItem('interlude:draft:s', '[[');
    expect(readDraft(storage, 's')).toEqual({ text: '', replyTo: null });
  });
});
