// @vitest-environment happy-dom

import type { Attachment } from '@interlude/protocol/field-schemas';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { act, cleanup, createEvent, fireEvent, render, screen } from '@testing-library/react';
import { createRef } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Composer, type ComposerHandle } from '@/components/composer/composer';
import { DeliveryLine } from '@/components/composer/delivery-line';
import { readDraft, readOutgoing, storeDraft } from '@/components/composer/draft-store';
import { outgoingQueues } from '@/components/composer/outgoing-queue';
import { uploadLists } from '@/components/composer/upload-list';
import { RefusalsProvider } from '@/components/live/refusals';
import { NowProvider } from '@/components/ui/clock';
import { HeldRequest } from './held-request';
import { layOut, settle } from './laid-out';
import { aMessage, anAgent, aSession } from './rows';

const attachmentOf = (name: string): Attachment => ({
  hash: 'a'.repeat(64),
  name,
  mediaType: 'image/png',
  bytes: 3,
});
const fileOf = (name: string) => new File(['abc'], name, { type: 'image/png' });
const TAKES_ALL = { attachments: ['image', 'file'] };

let sent: unknown[];
/** A session for each test, because attachments outlive the page. */
let sessionId: string;
let count = 0;
/** The server's response to a request for an attachment. */
let attachmentStatus: number;
beforeEach(() => {
  sent = [];
  HeldRequest.hold();
  count += 1;
  sessionId = `s${count}`;
  attachmentStatus = 304;
  vi.stubGlobal('fetch', async (path: string) => {
    if (path.includes('/attachments/')) return new Response(null, { status: attachmentStatus });
    throw new TypeError('away');
  });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  localStorage.clear();
});

function open(
  options: { status?: object; ended?: string | null; agent?: Partial<AgentSummary>; texts?: string[] } = {},
) {
  const handle = createRef<ComposerHandle>();
  const composer = ({ status = TAKES_ALL, ended = null, agent = {}, texts = [] }: typeof options) => (
    <NowProvider renderedAt={1}>
      <RefusalsProvider status={status as Record<string, unknown>}>
        <Composer
          session={aSession({ id: sessionId })}
          agent={anAgent(agent)}
          ended={ended}
          sent={() => texts}
          quoteOf={() => null}
          onSend={(text, _, attachments) => sent.push([text, attachments.map(({ name }) => name)])}
          onLeave={() => {}}
          handle={handle}
        />
      </RefusalsProvider>
    </NowProvider>
  );
  const { rerender, unmount } = render(composer(options));
  return {
    handle,
    field: screen.getByRole<HTMLTextAreaElement>('textbox'),
    change: (next: typeof options) => rerender(composer(next)),
    leave: unmount,
  };
}

const form = () => screen.getByRole('form', { name: 'Composer' });
const pasted = (types: string[], ...files: File[]) =>
  fireEvent.paste(screen.getByRole('textbox'), { clipboardData: { files, types } });
const attach = async (name: string) => {
  const { length } = HeldRequest.all;
  pasted(['Files'], fileOf(name));
  await screen.findByText(name);
  await HeldRequest.at(length);
};
const press = (field: HTMLElement) => fireEvent.keyDown(field, { key: 'Enter' });
const write = (field: HTMLElement, value: string) => fireEvent.change(field, { target: { value } });
const namesSent = () => HeldRequest.all.map(({ url }) => new URL(url, 'http://x').searchParams.get('name'));
/** Ends an upload and waits for the updates. */
async function ends(at: number, end: (request: HeldRequest) => void): Promise<void> {
  const request = await HeldRequest.at(at);
  await act(async () => {
    end(request);
    await new Promise((resolve) => setTimeout(resolve));
  });
}
const done = (at: number) => ends(at, (request) => request.answer(201, attachmentOf(namesSent()[at] ?? '')));
const WAITS = 'The message will be sent when all uploads finish.';

describe('the composer', () => {
  it('sends on Enter, except while an input method composes', () => {
    const { field } = open();
    write(field, 'Half a thou');
    fireEvent.keyDown(field, { key: 'Enter', isComposing: true });
    fireEvent.keyDown(field, { key: 'Enter', shiftKey: true });
    expect([sent, field.value]).toEqual([[], 'Half a thou']);
    press(field);
    expect([sent, field.value]).toEqual([[['Half a thou', []]], '']);
  });

  it('recalls sent messages on ArrowUp and clears again on ArrowDown', () => {
    const { field } = open({ texts: ['Latest', 'Begin'] });
    const values = ['ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowDown'].map((key) => {
      fireEvent.keyDown(field, { key });
      return field.value;
    });
    expect(values).toEqual(['Latest', 'Begin', 'Latest', '']);
    write(field, 'Begun');
    fireEvent.keyDown(field, { key: 'ArrowUp' });
    expect(field.value).toBe('Begun');
  });

  it('warns when the agent is offline, and is disabled when the session has ended', () => {
    const { field, change } = open({ agent: { connection: 'away', connectedSince: 1 } });
    screen.getByText('Agent offline. Your message will be sent when it reconnects.');
    expect(field.disabled).toBe(false);
    change({ ended: 'The agent of this session has ended.' });
    screen.getByText('The agent of this session has ended.');
    expect(field.disabled).toBe(true);
    press(field);
    expect(sent).toEqual([]);
  });
});

it.each([
  ['queued', false, 'Queued'],
  ['queued', true, 'Queued until the agent reconnects'],
  ['delivered', false, 'Delivered'],
  ['seen', false, 'Seen'],
] as const)('delivery line of a %s message, away %s, says “%s”', (delivery, away, words) => {
  const nothing = { outgoing: null, sendAgain: null, edit: null, discard: null };
  render(<DeliveryLine item={aMessage({ role: 'user', delivery })} away={away} {...nothing} />);
  expect(screen.getByText(words)).toBeTruthy();
});

/** A sent message that waits for its image. */
async function waiting() {
  const opened = open();
  await attach('a.png');
  write(opened.field, 'See this');
  press(opened.field);
  await screen.findByText(WAITS);
  return opened;
}

describe('a message that waits for its attachments', () => {
  it.each(['', 'See this'])('with the text “%s” is not sent when the attachment is removed', async (text) => {
    const { field } = open();
    await attach('wrong.png');
    write(field, text);
    press(field);
    await screen.findByText(WAITS);
    fireEvent.click(screen.getByRole('button', { name: 'Remove “wrong.png”' }));
    await expect.poll(() => screen.queryByText('wrong.png')).toBeNull();
    expect([sent, field.value]).toEqual([[], text]);
    await attach('right.png');
    await done(1);
    expect(sent).toEqual([]);
    press(field);
    expect(sent).toEqual([[text || 'right.png', ['right.png']]]);
  });

  it('is not sent once the session has ended', async () => {
    const { field, change } = await waiting();
    change({ ended: 'It has ended.' });
    await done(0);
    expect([sent, field.value]).toEqual([[], 'See this']);
  });

  it('is sent with the current text, even after leaving the page', async () => {
    const { leave } = await waiting();
    leave();
    const { field: again } = open();
    await screen.findByText(WAITS);
    expect(again.value).toBe('See this');
    write(again, 'See that');
    await done(0);
    expect(sent).toEqual([['See that', ['a.png']]]);
    expect(again.value).toBe('');
  });

  it('is sent while another page is open', async () => {
    const { leave } = await waiting();
    leave();
    await done(0);
    expect(readOutgoing(localStorage, sessionId)).toMatchObject([
      { text: 'See this', attachments: [attachmentOf('a.png')] },
    ]);
    expect(readDraft(localStorage, sessionId)).toEqual({ text: '', replyTo: null });
    expect(open().field.value).toBe('');
    expect(screen.queryByText('a.png')).toBeNull();
    for (const { clientId } of outgoingQueues.of(sessionId).messages) outgoingQueues.of(sessionId).discard(clientId);
  });
});

describe('an attachment', () => {
  it('keeps uploading while another page is open, and is stored with the draft', async () => {
    const { field, leave } = open();
    await attach('a.png');
    write(field, 'Half');
    leave();
    await vi.waitFor(() => {
      const closing = new Event('beforeunload', { cancelable: true });
      dispatchEvent(closing);
      expect(closing.defaultPrevented).toBe(true);
    });
    await done(0);
    expect(readDraft(localStorage, sessionId)).toMatchObject({ text: 'Half', attachments: [attachmentOf('a.png')] });
    const later = new Event('beforeunload', { cancelable: true });
    dispatchEvent(later);
    expect(later.defaultPrevented).toBe(false);
    open();
    await screen.findByText('a.png');
    expect([sent, screen.queryByRole('progressbar')]).toEqual([[], null]);
  });

  it('of an old draft is reported as missing', async () => {
    attachmentStatus = 404;
    storeDraft(localStorage, sessionId, { text: 'Old', replyTo: null, attachments: [attachmentOf('old.png')] });
    const { field } = open();
    await screen.findByText('The server no longer has this file. Attach it again.');
    press(field);
    expect([sent, field.value]).toEqual([[], 'Old']);
  });

  it('is pasted if the text is its name, but not if it is an image of the text', async () => {
    const { field } = open();
    expect(pasted(['text/plain', 'text/html', 'Files'], fileOf('cells.png'))).toBe(true);
    expect(pasted(['text/plain', 'text/rtf', 'Files'], fileOf('cells.png'))).toBe(true);
    expect(pasted(['text/plain', 'Files'], fileOf('finder.png'))).toBe(false);
    await screen.findByText('finder.png');
    await HeldRequest.at(0);
    expect([namesSent(), screen.getAllByRole('listitem').length, field.value]).toEqual([['finder.png'], 1, '']);
  });

  it('is ignored when the agent accepts none', () => {
    const { field } = open({ status: {} });
    pasted(['Files'], fileOf('shot.png'));
    write(field, 'Only words');
    press(field);
    expect([sent, uploadLists.of(sessionId).uploads]).toEqual([[['Only words', []]], []]);
  });

  it('moves the focus to the field on retry', async () => {
    const { field } = open();
    await attach('a.png');
    await ends(0, (request) => request.answer(503, {}));
    const again = await screen.findByRole('button', { name: 'Try again: “a.png”' });
    again.focus();
    fireEvent.click(again);
    expect(document.activeElement).toBe(field);
  });
});

describe('a file dragged over the composer', () => {
  const held = (type: 'dragOver' | 'drop') => {
    const dataTransfer = { types: ['Files'], files: [fileOf('a.png')], dropEffect: 'copy' };
    const event = createEvent[type](form(), { dataTransfer }) as DragEvent;
    return { isLeftToBrowser: fireEvent(form(), event), dropEffect: event.dataTransfer?.dropEffect };
  };

  it.each([
    ['an agent that accepts none', { status: {} }, 'This agent doesn’t accept attachments.'],
    ['an agent that has ended', { ended: 'It has ended.' }, 'It has ended.'],
  ])('of %s does not replace the page, and the reason is shown', async (_, options, words) => {
    open(options);
    expect(held('dragOver')).toEqual({ isLeftToBrowser: false, dropEffect: 'none' });
    expect(screen.getByText(words)).toBeTruthy();
    expect(held('drop').isLeftToBrowser).toBe(false);
    expect(uploadLists.of(sessionId).uploads).toEqual([]);
  });

  it('is attached if the agent accepts it, while text goes to the field', async () => {
    open();
    expect(held('dragOver')).toEqual({ isLeftToBrowser: false, dropEffect: 'copy' });
    held('drop');
    await screen.findByText('a.png');
    expect(fireEvent.dragOver(form(), { dataTransfer: { types: ['text/plain'] } })).toBe(true);
  });
});

describe('a refused message', () => {
  const refused = {
    ...{ clientId: 'c1', text: 'See this', replyTo: 'm0', attachments: [attachmentOf('old.png')], at: 1 },
    ...{ state: 'refused' as const, messageId: null, reason: 'The server no longer has old.png' },
  };

  it.each([
    ['can be edited', () => {}, ['Try again', 'Edit', 'Discard']],
    ['can’t be edited where nothing can be written', null, ['Discard']],
  ])('%s', (_, act, buttons) => {
    const line = { item: aMessage({ role: 'user' }), outgoing: refused, away: false, discard: () => {} };
    render(<DeliveryLine {...line} sendAgain={act} edit={act} />);
    expect(screen.getAllByRole('button').map(({ textContent }) => textContent)).toEqual(buttons);
  });

  it('is discarded by the second press', async () => {
    vi.useFakeTimers();
    layOut();
    const discard = vi.fn();
    const line = { item: aMessage({ role: 'user' }), outgoing: refused, away: false, sendAgain: null, edit: null };
    render(<DeliveryLine {...line} discard={discard} />);
    await act(settle);
    fireEvent.click(screen.getByRole('button', { name: 'Discard' }));
    expect(discard).not.toHaveBeenCalled();
    await act(settle);
    fireEvent.click(screen.getByRole('button', { name: 'Press again to discard' }));
    expect(discard).toHaveBeenCalledOnce();
  });

  it('accepts no click on “Try again” when the button has just appeared', async () => {
    vi.useFakeTimers();
    layOut();
    const again = vi.fn();
    const line = { item: aMessage({ role: 'user' }), outgoing: refused, away: false, edit: null, discard: null };
    render(<DeliveryLine {...line} sendAgain={again} />);
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(again).not.toHaveBeenCalled();
    await act(settle);
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(again).toHaveBeenCalledOnce();
  });

  it('returns to the composer with its attachments, below the draft', async () => {
    attachmentStatus = 404;
    const { field, handle } = open();
    act(() => handle.current?.restoreMessage(refused));
    expect([field.value, document.activeElement]).toEqual(['See this', field]);
    await screen.findByText('The server no longer has this file. Attach it again.');
    write(field, 'Begun');
    act(() => handle.current?.restoreMessage({ text: 'old.png', replyTo: null, attachments: refused.attachments }));
    expect(field.value).toBe('Begun');
    act(() => handle.current?.restoreMessage({ text: 'More', replyTo: null }));
    expect(field.value).toBe('Begun\n\nMore');
    expect(readDraft(localStorage, sessionId)).toMatchObject({ text: 'Begun\n\nMore', replyTo: 'm0' });
  });
});
