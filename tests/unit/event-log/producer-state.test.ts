import { describe, expect, it } from 'vitest';
import { commitProducer } from '@/lib/server/event-log/producer-state';

const NOW = 1_000_000;
const stored = { epoch: 5, lastSeq: 10 };
const ahead = { epoch: NOW + 3_600_000, lastSeq: 1 };

describe('a producer', () => {
  it.each([
    ['its first batch, from 1', null, 5, [1, 2], { kind: 'appended', lastSeq: 2, newIndexes: [0, 1] }],
    ['its first batch, from beyond 1', null, 5, [2], { kind: 'gap', expectedSeq: 1 }],
    ['the next record', stored, 5, [11], { kind: 'appended', lastSeq: 11, newIndexes: [0] }],
    ['a record after a gap', stored, 5, [12], { kind: 'gap', expectedSeq: 11 }],
    ['duplicates', stored, 5, [9, 10], { kind: 'appended', lastSeq: 10, newIndexes: [] }],
    ['duplicates and new records', stored, 5, [9, 10, 11, 12], { kind: 'appended', lastSeq: 12, newIndexes: [2, 3] }],
    ['repeats among new records', stored, 5, [11, 11, 10, 12], { kind: 'appended', lastSeq: 12, newIndexes: [0, 3] }],
    ['a newer epoch, from 1', stored, 6, [1], { kind: 'appended', lastSeq: 1, newIndexes: [0] }],
    ['a newer epoch with a continued sequence', stored, 6, [11], { kind: 'gap', expectedSeq: 1 }],
    [
      'a first epoch a minute ahead of the clock',
      null,
      NOW + 60_000,
      [1],
      { kind: 'appended', lastSeq: 1, newIndexes: [0] },
    ],
    ['a first epoch further ahead', null, NOW + 60_001, [1], { kind: 'ahead', currentEpoch: null }],
    ['a newer epoch further ahead', stored, NOW + 60_001, [1], { kind: 'ahead', currentEpoch: 5 }],
    ['a stored epoch far ahead', ahead, ahead.epoch, [2], { kind: 'appended', lastSeq: 2, newIndexes: [0] }],
    ['an epoch newer than that', ahead, ahead.epoch + 1, [1], { kind: 'ahead', currentEpoch: ahead.epoch }],
    ['an older epoch', stored, 4, [11], { kind: 'fenced', currentEpoch: 5 }],
    ['an older epoch from 1', stored, 4, [1], { kind: 'fenced', currentEpoch: 5 }],
  ] as const)('answers %s', (_what, state, epoch, seqs, outcome) => {
    expect(commitProducer(state, { id: 'p', epoch }, [...seqs], NOW)).toEqual(outcome);
  });
});
