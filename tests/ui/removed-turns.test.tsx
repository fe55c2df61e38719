// @vitest-environment happy-dom

import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { RemovedHistory } from '@interlude/protocol/read-models';
import { cleanup, render, screen } from '@testing-library/react';
import { renderToStaticMarkup } from 'react-dom/server';
import { afterEach, describe, expect, it } from 'vitest';
import { type Lookup, LookupNotice } from '@/components/transcript/lookup-notice';
import { TranscriptTop } from '@/components/transcript/transcript';
import { NowProvider } from '@/components/ui/clock';
import { aMessage, aTurn } from './rows';

afterEach(cleanup);

const AT = new Date(2026, 10, 12, 14, 3).getTime();
const removed = (turns: number): RemovedHistory => ({ upTo: '7', turns, at: AT });

function aTop(fields: Partial<Parameters<typeof TranscriptTop>[0]> = {}) {
  const given = { hasMore: false, empty: false, removed: undefined, loading: false, error: null, ...fields };
  return (
    <NowProvider renderedAt={AT}>
      <TranscriptTop {...given} retry={async () => true} />
    </NowProvider>
  );
}
const topOf = (fields: Parameters<typeof aTop>[0]) => render(aTop(fields)).container.textContent;

describe('removed turns', () => {
  it.each([
    [124, '124 older turns were removed on or before 12 Nov 2026'],
    [12_400, '12,400 older turns were removed on or before 12 Nov 2026'],
    [1, '1 older turn was removed on 12 Nov 2026'],
    [0, 'Older entries were removed on or before 12 Nov 2026'],
  ])('shows that %i were removed, and when', (turns, words) => {
    expect(topOf({ removed: removed(turns) })).toBe(words);
    const time = document.querySelector('time');
    expect(time?.dateTime).toBe(new Date(AT).toISOString());
    expect(time?.title).toBe('Thursday 12 November 2026, 14:03:00');
  });

  it('are mentioned only when no older turn can be loaded', () => {
    for (const fields of [{ hasMore: true }, { loading: true }])
      expect(topOf({ removed: removed(2), ...fields })).toBe('Loading older turns…');
    expect(topOf({ removed: removed(2), error: new Error('No answer.') })).toContain('No answer.');
    expect(topOf({})).toBe('Beginning of the session');
  });

  it('are mentioned above the next step if nothing is left', () => {
    expect(topOf({ removed: removed(3), empty: true })).toBe(
      '3 older turns were removed on or before 12 Nov 2026. New turns appear here.',
    );
  });

  it('have no day in the server’s markup', () => {
    const markup = renderToStaticMarkup(aTop({ removed: removed(3) }));
    expect(markup).toContain('3 older turns were removed</span>');
  });

  it('are mentioned as soon as the stream reports them', () => {
    const state = transcriptFromPage({
      position: '6',
      hasMore: true,
      turns: ['2', '5'].map((position) => aTurn({ id: `r${position}`, position, items: [aMessage({ text: 'Hi' })] })),
    });
    const event = {
      type: 'CUSTOM',
      name: 'interlude:removed',
      value: {},
      metadata: { interlude: { removed: { upTo: '4', turns: 9 } } },
    };
    const { turns, hasMore, removed } = foldTranscript(state, [
      { position: '8', occurredAt: AT, receivedAt: AT, event },
    ]);
    expect(turns.map(({ id }) => id)).toEqual(['r5']);
    expect(topOf({ hasMore, removed })).toBe('9 older turns were removed on or before 12 Nov 2026');
  });
});

describe('a link to a missing turn', () => {
  const noticeOf = (isCut: boolean, lookup: Lookup) => {
    render(<LookupNotice lookup={lookup} turnCount={3} isCut={isCut} onRetry={() => {}} onClose={() => {}} />);
    return screen.getByRole('status').textContent;
  };

  it('mentions removed turns if there are any', () => {
    expect(noticeOf(true, { anchor: 'turn-r1', fromAddress: true, state: 'missing' })).toBe(
      'The linked turn is not in this transcript. It may have been removed with the oldest turns. Showing the newest turns.',
    );
    cleanup();
    expect(noticeOf(true, { anchor: 'task-12', fromAddress: false, state: 'missing' })).toMatch(
      /^The linked task is not in this transcript. It may have been removed with the oldest turns\.$/,
    );
    cleanup();
    expect(noticeOf(false, { anchor: 'message-m', fromAddress: false, state: 'missing' })).toBe(
      'The linked message is not in this session.',
    );
  });
});
