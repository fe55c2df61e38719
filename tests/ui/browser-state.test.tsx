// @vitest-environment happy-dom
import { act, fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PagePerson } from '@/components/access/page-person';
import {
  readDraft,
  readOutgoing,
  sessionsWithOutgoing,
  storeDraft,
  storeOutgoing,
} from '@/components/composer/draft-store';
import { outgoingQueues, sendMessage } from '@/components/composer/outgoing-queue';
import { fetchJson, postJson } from '@/components/live/fetch-json';
import { readStream } from '@/components/live/read-stream';
import { SignOut } from '@/components/live/sign-out';
import {
  browserStorage,
  claimStorage,
  clearStorage,
  keysOf,
  readStored,
  setPerson,
  writeStored,
} from '@/components/ui/browser-storage';

const MESSAGE = {
  clientId: 'c1',
  text: 'Drop the table',
  replyTo: null,
  at: 1,
  state: 'retrying' as const,
  messageId: null,
  reason: null,
};

/** Loads a new page of the browser for a user. */
function openAs(id: string): void {
  claimStorage(id);
}

const refusal = (status: number, code: string) =>
  vi.fn(async () => Response.json({ error: { code, message: 'No.' } }, { status }));

let reload: ReturnType<typeof vi.fn<() => void>>;
beforeEach(() => {
  localStorage.clear();
  setPerson(null);
  reload = vi.fn<() => void>();
  vi.spyOn(location, 'reload').mockImplementation(reload);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  document.documentElement.style.display = '';
});

describe('browser storage', () => {
  it('has the person in every key', () => {
    openAs('ada');
    storeDraft(browserStorage(), 's', { text: 'Half a thought', replyTo: null });
    storeOutgoing(browserStorage(), 's', MESSAGE);
    writeStored('choice', 'mine');
    expect(keysOf(localStorage).filter((key) => key !== 'interlude:current')).toEqual(
      keysOf(localStorage).filter((key) => key.startsWith('interlude:of:ada:')),
    );
    openAs('bob');
    expect(readDraft(browserStorage(), 's').text).toBe('');
    expect(readOutgoing(browserStorage(), 's')).toEqual([]);
    expect(sessionsWithOutgoing(browserStorage())).toEqual([]);
    expect(readStored('choice')).toBeNull();
    openAs('ada');
    expect(readDraft(browserStorage(), 's').text).toBe('Half a thought');
    expect(readOutgoing(browserStorage(), 's')).toHaveLength(1);
  });

  it('distinguishes ids that contain a colon', () => {
    openAs('ada');
    writeStored('draft:s', 'private');
    openAs('ada:draft');
    expect(readStored('s')).toBeNull();
  });

  it('drops entries without a person on the first load', () => {
    const old = {
      'interlude:draft:s': '{"text":"old"}',
      'interlude:outgoing:s:c1': '{"text":"old","at":1}',
      'interlude:fold:agents': 'folded',
      'interlude:fold-activity': 'folded',
      'interlude:log-settings': '{}',
      'interlude.log-panel.open': '1',
      'interlude-notices': '{}',
      'interlude-notices-look': '{}',
      'interlude-person': 'x',
    };
    for (const [key, value] of Object.entries(old)) localStorage.setItem(key, value);
    localStorage.setItem('theme', 'dark');
    localStorage.setItem('interlude/other:draft:s', 'of another dashboard');
    openAs('ada');
    expect(keysOf(localStorage).sort()).toEqual(['interlude/other:draft:s', 'interlude:current', 'theme']);
    expect(sessionsWithOutgoing(browserStorage())).toEqual([]);
  });

  it('stores nothing without a person, as in an embed', () => {
    writeStored('choice', 'mine');
    expect([browserStorage(), localStorage.length, readStored('choice')]).toEqual([null, 0, 'mine']);
  });

  it('is cleared on sign-out for all people, except entries of other apps', () => {
    localStorage.setItem('of-another-app', '1');
    openAs('ada');
    writeStored('choice', 'mine');
    openAs('bob');
    clearStorage();
    expect(keysOf(localStorage)).toEqual(['of-another-app']);
  });
});

describe('a page whose person has changed', () => {
  const show = (id: string, page: ReactNode = null) => render(<PagePerson id={id}>{page}</PagePerson>);
  const storageEvent = () => act(() => void dispatchEvent(new StorageEvent('storage')));

  it.each([
    ['somebody else signs in', () => localStorage.setItem('interlude:current', 'bob')],
    ['its person signs out', () => localStorage.removeItem('interlude:current')],
    ['the browser clears its storage', () => localStorage.clear()],
  ])('hides when %s in another tab', (_, happen) => {
    show('ada');
    happen();
    storageEvent();
    expect([reload.mock.calls.length, document.documentElement.style.display]).toEqual([1, 'none']);
  });

  it('stays while its person is signed in', () => {
    show('ada');
    localStorage.setItem('interlude:current', 'ada');
    storageEvent();
    expect(reload).not.toHaveBeenCalled();
  });

  it('hides when it is shown again after a change', () => {
    show('ada');
    localStorage.setItem('interlude:current', 'bob');
    document.dispatchEvent(new Event('visibilitychange'));
    expect(reload).toHaveBeenCalledOnce();
  });

  it('hides when the server renders it for another person', () => {
    const { rerender } = show('ada');
    rerender(<PagePerson id="bob">{null}</PagePerson>);
    expect(reload).toHaveBeenCalledOnce();
  });

  it.each([
    ['', () => localStorage.clear()],
    [', also to the same person', () => localStorage.setItem('interlude:current', 'ada')],
  ])('follows its own sign-out, and hides when restored from the back/forward cache%s', (_, happen) => {
    show('ada', <SignOut label="Sign out" className="" />);
    const form = document.querySelector('form');
    expect(form?.elements.namedItem('principal')).toHaveProperty('value', 'ada');
    form?.addEventListener('submit', (event) => event.preventDefault());
    act(() => form?.requestSubmit());
    happen();
    storageEvent();
    expect(reload).not.toHaveBeenCalled();
    dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
    expect(reload).toHaveBeenCalledOnce();
  });

  it('asks once before a sign-out that deletes unsent messages', () => {
    show('ada', <SignOut label="Sign out" className="" />);
    localStorage.setItem('interlude:of:ada:draft:s1', '{"text":"A draft"}');
    const submit = () => fireEvent.submit(document.querySelector('form') as HTMLFormElement);
    localStorage.setItem('interlude:of:ada:outgoing:s1:c1', '{"text":"Unsent","at":1}');
    expect(submit()).toBe(false);
    expect(screen.getByRole('alert').textContent).toContain('your unsent messages');
    expect(submit()).toBe(true);
  });

  it('sends nothing after another person signs in', async () => {
    show('ada');
    const fetched = vi.fn();
    vi.stubGlobal('fetch', fetched);
    outgoingQueues.of('left');
    localStorage.removeItem('interlude:current');
    storageEvent();
    outgoingQueues.of('left').post('Too late', null);
    writeStored('choice', 'mine');
    await expect(postJson('/inbox/marks', {})).rejects.toThrow(TypeError);
    expect([fetched.mock.calls.length, localStorage.length]).toEqual([0, 0]);
    outgoingQueues.of('left').discard(outgoingQueues.of('left').messages[0]?.clientId ?? '');
  });

  it('hides when the server reports another person', async () => {
    show('ada');
    vi.stubGlobal('fetch', refusal(409, 'other_principal'));
    await expect(fetchJson('/sessions')).rejects.toMatchObject({ status: 409, code: 'other_principal' });
    expect(reload).toHaveBeenCalledOnce();
  });
});

describe('a request of a page', () => {
  it('names its author', async () => {
    openAs('ada');
    const sent: RequestInit[] = [];
    vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
      sent.push(init);
      return Response.json({});
    });
    await postJson('/sessions/s/messages', {});
    expect(sent[0]?.headers).toMatchObject({ 'x-interlude-principal': 'ada' });
  });

  it.each([
    [401, 'unauthenticated'],
    [409, 'other_principal'],
  ])('waits for its author after %s %s', async (status, code) => {
    openAs('ada');
    vi.stubGlobal('fetch', refusal(status, code));
    expect(await sendMessage('s', MESSAGE)).toEqual({ kind: 'signed-out', reason: 'No.' });
  });

  it('opens no stream once the server has refused its person', async () => {
    openAs('ada');
    vi.stubGlobal('fetch', refusal(409, 'other_principal'));
    const handlers = { active() {}, hello() {}, rows() {}, upToDate() {} };
    const request = { topics: ['fleet'], after: '0', signal: new AbortController().signal };
    expect(await readStream(request, handlers)).toBe('unauthorized');
  });
});
