import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldTranscript, type TranscriptState, transcriptFromPage } from '@/lib/projections/transcript';
import { placeEvents } from '@/lib/projections/turns';
import { NO_PLACES } from '@/lib/protocol/turn-places';
import { arbitraryBatches } from '../support/arbitrary-events';
import { MemoryLog } from '../support/memory-log';

const visible = (state: Pick<TranscriptState, 'turns'>) => state.turns;

/** A thousand runs take what they take; on a busy machine several times what they take alone. */
const LIMIT_MS = 180_000;

describe('the transcript', { timeout: LIMIT_MS }, () => {
  it('folded live equals the one reloaded at the same position, wherever the client came in', () => {
    fc.assert(
      fc.property(arbitraryBatches, fc.nat(12), (batches, cameIn) => {
        const log = new MemoryLog();
        const snapshotAt = Math.min(cameIn, batches.length);
        for (const batch of batches.slice(0, snapshotAt)) log.append(batch);
        let live = transcriptFromPage(log.page());
        for (const batch of batches.slice(snapshotAt)) live = foldTranscript(live, log.append(batch));
        expect(visible(live)).toEqual(visible(transcriptFromPage(log.page())));
      }),
      { numRuns: 1000 },
    );
  });

  it('ends the same for a client that was cut off and resumed in the middle of anything', () => {
    fc.assert(
      fc.property(arbitraryBatches, fc.nat(12), fc.nat(12), (batches, a, b) => {
        const log = new MemoryLog();
        const [cutAt, backAt] = [Math.min(a, b), Math.max(a, b)];
        let client = transcriptFromPage(log.page());
        for (const [index, batch] of batches.entries()) {
          const frames = log.append(batch);
          if (index < cutAt) client = foldTranscript(client, frames);
          else if (index === backAt) client = foldTranscript(client, log.after(client.position));
          else if (index > backAt) client = foldTranscript(client, frames);
        }
        client = foldTranscript(client, log.after(client.position));
        expect(visible(client)).toEqual(visible(transcriptFromPage(log.page())));
      }),
      { numRuns: 1000 },
    );
  });

  it('ignores what it has folded already', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const log = new MemoryLog();
        let live = transcriptFromPage(log.page());
        for (const batch of batches) live = foldTranscript(live, log.append(batch));
        expect(foldTranscript(live, log.after('0'))).toBe(live);
      }),
    );
  });

  it('places events the same whether they come one by one or in batches', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const entries = new MemoryLog().append(batches.flat());
        const whole = placeEvents(NO_PLACES, entries);
        let places = NO_PLACES;
        const single = entries.flatMap((entry) => {
          const step = placeEvents(places, [entry]);
          places = step.places;
          return step.placements;
        });
        expect(single).toEqual(whole.placements);
        expect(places).toEqual(whole.places);
      }),
    );
  });

  it('shows each message, wherever it moved, in one turn only', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const log = new MemoryLog();
        for (const batch of batches) log.append(batch);
        const rows = log.rows.filter((row) => row.turnId !== null && !row.turnId.startsWith('task:'));
        for (const row of rows) expect(log.headers.has(row.turnId as string)).toBe(true);
      }),
    );
  });
});
