// @vitest-environment happy-dom

import type { Attachment } from '@interlude/protocol/field-schemas';
import { foldItems } from '@interlude/protocol/projections/items';
import { EMPTY_TRANSCRIPT } from '@interlude/protocol/projections/transcript';
import type { MessageItem } from '@interlude/protocol/read-models';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import { AttachmentChips } from '@/components/composer/attachment-chips';
import { readDraft, readOutgoing, storeDraft, storeOutgoing } from '@/components/composer/draft-store';
import { UploadList } from '@/components/composer/upload-list';
import { AttachButton } from '@/components/composer/use-attachments';
import { withOutgoing } from '@/components/composer/with-outgoing';
import { MessageView } from '@/components/transcript/message-view';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { aMessage } from './rows';

afterEach(cleanup);

const hash = 'a'.repeat(64);
const image: Attachment = { hash, name: 'shot.png', mediaType: 'image/png', bytes: 51_000 };
const page: Attachment = { hash: 'b'.repeat(64), name: 'a\u202Egpj.html', mediaType: 'text/html', bytes: 1 };

const slots = {
  hrefOf: ({ hash: of }: Attachment) => `/api/${of}`,
  renderDelivery: () => null,
  renderObligation: () => null,
  replyTo: null,
} as unknown as TranscriptSlots;
const show = (item: MessageItem) =>
  render(
    <TranscriptSlotsProvider value={slots}>
      <MessageView item={item} queued={false} answers="" />
    </TranscriptSlotsProvider>,
  );

describe('a message in the transcript', () => {
  it('shows images with a link to the full size, and files with their size', () => {
    show(aMessage({ role: 'user', text: 'Look', attachments: [image, page] }));
    const shown = screen.getByRole('img', { name: '“shot.png”' });
    expect(shown.getAttribute('src')).toBe(`/api/${hash}`);
    expect(shown.closest('a')?.getAttribute('target')).toBe('_blank');
    const file = screen.getByRole('link', { name: /1 byte/ });
    // The saved name equals the shown name.
    expect(file.textContent).toContain('RLO');
    expect(file.getAttribute('download')).not.toContain('\u202E');
  });

  it('names an image that is no longer available', () => {
    show(aMessage({ role: 'user', attachments: [image] }));
    fireEvent.error(screen.getByRole('img', { name: '“shot.png”' }));
    expect(screen.queryByRole('img')).toBeNull();
    expect(screen.getByRole('link', { name: /shot\.png.*51 kB/ })).toBeTruthy();
  });

  it('lists as many attachments as fit when folded', () => {
    const attachments = [image, { ...image, hash: '../x' }, { ...image, bytes: '1' }, null, ...Array(20).fill(page)];
    const event = {
      type: 'TEXT_MESSAGE_START',
      messageId: 'm',
      role: 'user',
      metadata: { interlude: { attachments } },
    };
    const entry = { position: '1', occurredAt: 1, receivedAt: 1, event } as never;
    expect(foldItems([], [entry])[0]).toMatchObject({ attachments: [image, page, page, page, page] });
    const plain = { ...event, metadata: { interlude: { attachments: 'x' } } };
    expect(
      foldItems([], [{ position: '1', occurredAt: 1, receivedAt: 1, event: plain } as never])[0],
    ).not.toHaveProperty('attachments');
  });
});

describe('a draft', () => {
  it('is stored with its uploads, which show until the transcript has them', () => {
    const storage = window.localStorage;
    storeDraft(storage, 's', { text: '', replyTo: null, attachments: [image] });
    expect(readDraft(storage, 's').attachments).toEqual([image]);
    storeDraft(storage, 's', { text: '', replyTo: null, attachments: undefined });
    expect(readDraft(storage, 's')).toEqual({ text: '', replyTo: null });
    storeOutgoing(storage, 's', {
      ...{ clientId: 'c1', text: 'Look', replyTo: null, attachments: [image], at: 1 },
      ...{ state: 'sending', messageId: null, reason: null },
    });
    const [message] = readOutgoing(storage, 's');
    expect(message?.attachments).toEqual([image]);
    const { turns } = withOutgoing(EMPTY_TRANSCRIPT, readOutgoing(storage, 's'));
    expect(turns[0]?.items[0]).toMatchObject({ text: 'Look', attachments: [image] });
  });

  it('accepts files only if the agent does, and the button says why not', () => {
    const { rerender } = render(<AttachButton accepts={[]} onAttach={() => {}} />);
    const button = screen.getByRole('button', { name: 'Attach files' });
    expect(button.getAttribute('aria-disabled')).toBe('true');
    expect(button.title).toBe('This agent doesn’t accept attachments');
    rerender(<AttachButton accepts={['image']} onAttach={() => {}} />);
    expect(screen.getByRole('button', { name: 'Attach images' }).getAttribute('aria-disabled')).toBe('false');
  });

  it('shows each upload with its name, state and buttons', async () => {
    let ends = (_reason: string) => {};
    const list = new UploadList({
      upload: () =>
        new Promise((resolve) => {
          ends = (reason) => resolve({ kind: 'failed', reason, canRetry: true });
        }),
      isStored: async () => true,
      addresses: { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} },
    });
    list.configure({ accepts: ['image', 'file'], onChange: () => {}, onReady: () => {} });
    list.add([new File(['x'], 'shot.png', { type: 'image/png' })]);
    let gone = 0;
    const chips = () => (
      <AttachmentChips sessionId="s" uploads={list.uploads} list={list} onRemoved={() => (gone += 1)} />
    );
    const { rerender } = render(chips());
    expect(screen.getByRole('progressbar', { name: 'Uploading “shot.png”' })).toBeTruthy();
    ends('The server can’t be reached.');
    await expect.poll(() => list.uploads[0]?.state.kind).toBe('failed');
    rerender(chips());
    expect(screen.getByRole('alert').textContent).toBe('The server can’t be reached.');
    fireEvent.click(screen.getByRole('button', { name: 'Try again: “shot.png”' }));
    // The pressed button disappears, so the focus moves to the field.
    expect(gone).toBe(1);
    rerender(chips());
    expect(screen.getByRole('progressbar', { name: 'Uploading “shot.png”' })).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Remove “shot.png”' }));
    expect([list.uploads, gone]).toEqual([[], 2]);
  });
});
