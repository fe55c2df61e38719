import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { historyRetention } from '@/lib/server/retention/retention-settings';

const DAY_MS = 24 * 60 * 60_000;
const warned = vi.fn();
beforeEach(() => {
  warned.mockReset();
  vi.spyOn(console, 'error').mockImplementation(warned);
});
afterEach(() => vi.restoreAllMocks());

describe('the retention settings', () => {
  test('are 90 days, 400 for the audit and any size by default', () => {
    const kept = historyRetention({});
    expect(new Set(Object.values(kept.maxAgeMs))).toEqual(new Set([90 * DAY_MS]));
    expect(kept).toMatchObject({
      elsewhereMs: 90 * DAY_MS,
      auditMs: 400 * DAY_MS,
      maxBytes: Number.POSITIVE_INFINITY,
    });
  });

  test('are read from the environment for each state', () => {
    const kept = historyRetention({
      INTERLUDE_RETENTION_DAYS: 'forever',
      INTERLUDE_RETENTION_DAYS_BY_STATE: 'exited=0.5, complete = 7',
      INTERLUDE_AUDIT_RETENTION_DAYS: '1000',
      INTERLUDE_RETENTION_MIB: '100',
    });
    expect(kept.maxAgeMs).toMatchObject({
      exited: DAY_MS / 2,
      complete: 7 * DAY_MS,
      idle: Number.POSITIVE_INFINITY,
    });
    expect(kept).toMatchObject({
      elsewhereMs: Number.POSITIVE_INFINITY,
      auditMs: 1000 * DAY_MS,
      maxBytes: 104_857_600,
    });
    expect(warned).not.toHaveBeenCalled();
  });

  test('are unlimited and logged when invalid', () => {
    for (const text of ['-1', '0', 'never', 'forever # keep']) {
      const { maxAgeMs, auditMs } = historyRetention({
        INTERLUDE_RETENTION_DAYS: text,
        INTERLUDE_AUDIT_RETENTION_DAYS: text,
      });
      expect([maxAgeMs.idle, auditMs]).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
    }
    expect(warned).toHaveBeenCalledTimes(8);
    const { maxAgeMs } = historyRetention({ INTERLUDE_RETENTION_DAYS_BY_STATE: 'gone=3,idle=soon,exited=3' });
    expect(maxAgeMs).toMatchObject({ idle: Number.POSITIVE_INFINITY, exited: 3 * DAY_MS, failed: 90 * DAY_MS });
    expect(warned).toHaveBeenCalledTimes(10);
  });

  test('may contain blanks and capitals', () => {
    expect(historyRetention({ INTERLUDE_RETENTION_DAYS: ' Forever ' }).elsewhereMs).toBe(Number.POSITIVE_INFINITY);
    expect(warned).not.toHaveBeenCalled();
  });
});
