import type { AttachmentKind } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { beforeEach, describe, expect, it } from 'vitest';
import { messageText, UploadList, type UploadOutcome } from '@/components/composer/upload-list';

const MIB = 1024 * 1024;
const fileOf = (name: string, bytes = 3, type = 'image/png') => new File([new Uint8Array(bytes)], name, { type });
const attachmentOf = (name: string): Attachment => ({
  hash: `hash of ${name}`,
  name,
  mediaType: 'image/png',
  bytes: 3,
});

/** A list whose uploads the test settles. */
let calls: { name: string; onProgress: (share: number) => void; end: (outcome: UploadOutcome) => void }[];
let kept: string[][];
let sent: number;
let gone: string[];
let stopped: string[];
/** Names of earlier attachments that the server still has. */
let held: Map<string, boolean | null>;
let list: UploadList;
beforeEach(() => {
  [calls, kept, sent, gone, stopped] = [[], [], 0, [], []];
  held = new Map();
  list = listFor(['image', 'file']);
});

function listFor(accepts: readonly AttachmentKind[]): UploadList {
  const made = new UploadList({
    upload: ({ name }, onProgress, signal) =>
      new Promise((end) => {
        calls.push({ name, onProgress, end });
        signal.addEventListener('abort', () => stopped.push(name));
      }),
    isStored: async ({ name }) => held.get(name) ?? null,
    addresses: {
      createObjectURL: (file) => `blob:${(file as File).name}`,
      revokeObjectURL: (address) => void gone.push(address),
    },
  });
  made.configure({
    accepts,
    onChange: (attachments) => kept.push(attachments.map(({ name }) => name)),
    onReady: () => {
      sent += 1;
    },
  });
  return made;
}

const done = (at: number) => {
  const call = calls[at];
  call?.end({ kind: 'done', attachment: attachmentOf(call.name) });
};
const fails = (at: number, canRetry = true) => calls[at]?.end({ kind: 'failed', reason: 'It broke.', canRetry });
const states = () =>
  list.uploads.map(({ name, state }) => {
    if (state.kind === 'sending') return `${name} ${Math.round(state.share * 100)} %`;
    return state.kind === 'done' ? `${name} is there` : `${name}: ${state.reason}`;
  });
const settled = () => expect.poll(states, { interval: 1 });

describe('an attachment', () => {
  it('keeps the order of attaching, not of uploading', async () => {
    list.add([fileOf('a'), fileOf('b')]);
    calls[1]?.onProgress(0.5);
    expect(states()).toEqual(['a 0 %', 'b 50 %']);
    done(1);
    await settled().toEqual(['a 0 %', 'b is there']);
    done(0);
    await settled().toEqual(['a is there', 'b is there']);
    expect(list.attachments.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(kept).toEqual([['b'], ['a', 'b']]);
  });

  it('over a limit is refused before the upload', () => {
    list.add([
      fileOf('empty', 0),
      fileOf('large', 5 * MIB + 1),
      fileOf('a', 5 * MIB),
      fileOf('b', 5 * MIB),
      fileOf('c'),
    ]);
    expect(states()).toEqual([
      'empty: The file is empty.',
      'large: Larger than 5 MiB.',
      'a 0 %',
      'b 0 %',
      'c: A message can have at most 10 MiB of attachments. Send this one separately.',
    ]);
    list.clear();
    list.add(Array.from({ length: 9 }, (_, index) => fileOf(String(index))));
    expect(states().at(-1)).toBe('8: A message can have at most 8 attachments.');
    list = listFor(['file']);
    list.add([fileOf('a'), fileOf('b', 3, 'text/plain')]);
    expect(states()).toEqual(['a: This agent doesn’t accept images.', 'b 0 %']);
  });

  it('whose upload failed can be retried if the failure is temporary', async () => {
    list.add([fileOf('a'), fileOf('b')]);
    fails(0);
    fails(1, false);
    await settled().toEqual(['a: It broke.', 'b: It broke.']);
    expect(list.uploads.map(({ state }) => state.kind === 'failed' && state.canRetry)).toEqual([true, false]);
    list.tryAgain(list.uploads[0]?.key ?? 0);
    expect(states()[0]).toBe('a 0 %');
    done(2);
    await settled().toEqual(['a is there', 'b: It broke.']);
  });

  it('stops uploading and revokes its preview when it is removed', async () => {
    list.add([fileOf('a'), fileOf('b')]);
    list.remove(list.uploads[0]?.key ?? 0);
    expect([stopped, gone]).toEqual([['a'], ['blob:a']]);
    done(0);
    done(1);
    await settled().toEqual(['b is there']);
    list.remove(list.uploads[0]?.key ?? 0);
    expect(kept).toEqual([[], ['b'], []]);
  });

  it('of an earlier page is added at the end, within the limits', async () => {
    list.add(Array.from({ length: 7 }, (_, index) => fileOf(String(index))));
    list.restore([attachmentOf('old'), attachmentOf('older')]);
    expect(states().slice(-2)).toEqual(['old is there', 'older: A message can have at most 8 attachments.']);
    expect(list.uploads.at(-2)?.preview).toBeNull();
    expect(kept).toEqual([['old', 'older']]);
  });

  it('that the server removed is reported as missing until it is uploaded again', async () => {
    const GONE = 'The server no longer has this file. Attach it again.';
    held = new Map([
      ['old', false],
      ['kept', true],
    ]);
    list.restore([attachmentOf('old'), attachmentOf('kept'), attachmentOf('unknown')]);
    await settled().toEqual([`old: ${GONE}`, 'kept is there', 'unknown is there']);
    expect(list.uploads.map(({ state }) => state.kind === 'failed' && state.canRetry)).toEqual([false, false, false]);
    expect(list.mayBeSent()).toBe(false);
    // The next page reports it, too.
    list.remove(list.uploads[2]?.key ?? 0);
    expect(kept.at(-1)).toEqual(['old', 'kept']);
    list.add([fileOf('old')]);
    done(0);
    await settled().toEqual(['kept is there', 'old is there']);
    expect([kept.at(-1), list.mayBeSent()]).toEqual([['kept', 'old'], true]);
  });

  it('without bytes and type may be a folder', () => {
    list.add([fileOf('empty.txt', 0, 'text/plain'), fileOf('src', 0, '')]);
    expect(states()).toEqual([
      'empty.txt: The file is empty.',
      'src: The file is empty. If it is a folder, attach the files in it.',
    ]);
  });
});

describe('a message', () => {
  it('waits for its uploads and is sent once', async () => {
    list.add([fileOf('a'), fileOf('b')]);
    expect(list.mayBeSent()).toBe(false);
    expect(list.words).toBe('The message will be sent when all uploads finish.');
    done(0);
    await settled().toEqual(['a is there', 'b 0 %']);
    expect(sent).toBe(0);
    done(1);
    await settled().toEqual(['a is there', 'b is there']);
    expect(sent).toBe(1);
    expect(list.mayBeSent()).toBe(true);
    expect(sent).toBe(1);
  });

  it('is cancelled when an attachment is removed while it waits', async () => {
    list.add([fileOf('a'), fileOf('b')]);
    expect(list.mayBeSent()).toBe(false);
    list.remove(list.uploads[1]?.key ?? 0);
    expect([sent, list.words]).toEqual([0, null]);
    done(0);
    await settled().toEqual(['a is there']);
    expect([sent, list.mayBeSent()]).toEqual([0, true]);
  });

  it('is cancelled when another message returns to the composer', async () => {
    for (const back of [[], [attachmentOf('old')]]) {
      list.clear();
      list.add([fileOf('a')]);
      expect(list.mayBeSent()).toBe(false);
      list.restore(back);
      expect(list.isAwaited).toBe(false);
      done(calls.length - 1);
      await expect.poll(() => list.attachments.length).toBe(1 + back.length);
    }
    expect(sent).toBe(0);
  });

  it('is not sent while an upload has failed, nor later', async () => {
    list.add([fileOf('a')]);
    expect(list.mayBeSent()).toBe(false);
    fails(0);
    await settled().toEqual(['a: It broke.']);
    expect(list.mayBeSent()).toBe(false);
    expect(list.words).toContain('to send the message');
    list.tryAgain(list.uploads[0]?.key ?? 0);
    done(1);
    await settled().toEqual(['a is there']);
    expect([sent, list.mayBeSent()]).toEqual([0, true]);
  });

  it('without text names its attachments', () => {
    expect(messageText(' ', [attachmentOf('a.png'), attachmentOf('b.txt')])).toBe('a.png, b.txt');
    expect(messageText('Look', [attachmentOf('a.png')])).toBe('Look');
  });
});
