// @vitest-environment happy-dom

import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Virtualizer } from '@tanstack/react-virtual';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { useSelected } from '@/components/live/use-folded';
import { LookupNotice } from '@/components/transcript/lookup-notice';
import { TranscriptStore } from '@/components/transcript/transcript-store';
import { useJumpTarget } from '@/components/transcript/use-jump-target';
import { MemoryLog } from '../support/memory-log';
import { userTurn } from '../support/turn-events';

let log: MemoryLog;
let scrolledTo: string[];
const virtualizer = {
  scrollToIndex: (index: number) => scrolledTo.push(`turn ${index}`),
  scrollToOffset: () => scrolledTo.push('the first turn'),
  scrollToEnd: () => scrolledTo.push('the end'),
  scrollElement: null,
} as unknown as Virtualizer<HTMLDivElement, HTMLDivElement>;

beforeEach(() => {
  log = new MemoryLog();
  for (let index = 0; index < 40; index++) log.append(userTurn(`r${index}`, `Question ${index}`, 'Answer'));
  scrolledTo = [];
});
afterEach(() => {
  cleanup();
  history.replaceState(null, '', '/');
});

/**
 * Opens a session at an anchor. The page has its newest ten turns; `readOlder` may delay or replace each page of older
 * turns.
 */
function open(anchor: string, readOlder = async (older: TranscriptPage) => older) {
  history.replaceState(null, '', `/sessions/s#${anchor}`);
  const read = (_: string, { before }: { before?: string }) => readOlder(log.page({ before }));
  render(<Page store={new TranscriptStore('s', log.page({ limit: 10 }), read)} />);
}

function Page({ store }: { store: TranscriptStore }) {
  const turns = useSelected(store, ({ value }) => value?.turns) ?? [];
  const { lookup, follow, closeLookup, toFirst } = useJumpTarget({ turns, virtualizer, seek: store.seek });
  return (
    <>
      <button type="button" onClick={toFirst} />
      {turns.map(({ id }) => (
        <article key={id} id={`turn-${id}`} tabIndex={-1} />
      ))}
      <LookupNotice lookup={lookup} turnCount={turns.length} isCut={false} onRetry={follow} onClose={closeLookup} />
    </>
  );
}
const notice = () => screen.getByRole('status').textContent;

test('loads and shows an old turn from the address', async () => {
  let answer = () => {};
  open('turn-r20', (older) => {
    return new Promise((resolve) => {
      answer = () => resolve(older);
    });
  });
  await vi.waitFor(() => expect(notice()).toBe('Looking for the linked turn… 10 turns searched'));
  answer();
  await vi.waitFor(() => expect([document.activeElement?.id, notice()]).toEqual(['turn-r20', '']));
  expect(scrolledTo).toEqual(['turn 20']);
});

test('loads all turns to show the first one', async () => {
  open('');
  fireEvent.click(screen.getByRole('button'));
  await vi.waitFor(() => expect(document.activeElement?.id).toBe('turn-r0'));
  expect([new Set(scrolledTo), location.hash]).toEqual([new Set(['the first turn']), '#turn-r0']);
});

test('shows why older turns could not be loaded, and retries', async () => {
  let isDown = true;
  open('turn-r20', async (older) => {
    if (isDown) throw new Error('The database does not answer.');
    return older;
  });
  await vi.waitFor(() =>
    expect(notice()).toMatch(/^The linked turn could not be loaded: The database does not answer\./),
  );
  expect(scrolledTo).toEqual(['the end']);
  isDown = false;
  fireEvent.click(screen.getByText('Retry'));
  await vi.waitFor(() => expect([document.activeElement?.id, notice()]).toEqual(['turn-r20', '']));
});

test('shows the end with a note for a broken link', async () => {
  open('turn-nowhere');
  await vi.waitFor(() => expect(notice()).toMatch(/^The linked turn is not in this session\./));
  expect(scrolledTo).toEqual(['the end']);
  fireEvent.click(screen.getByLabelText('Dismiss'));
  expect(notice()).toBe('');
});

test('ignores an address without an anchor of the session', async () => {
  open('elsewhere');
  await new Promise((resolve) => requestAnimationFrame(resolve));
  expect([scrolledTo, notice()]).toEqual([[], '']);
});
