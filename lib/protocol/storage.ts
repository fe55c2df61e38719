import * as z from 'zod';
import { SessionState } from './field-schemas';

/** Size of the whole database, independent of the reader's scope, and its retention rules. */

export const STORAGE_PARTS = [
  'events',
  'views',
  'logs',
  'search',
  'commands',
  'attachments',
  'audit',
  'quarantine',
  'insights',
  'webhooks',
  'access',
  'rest',
] as const;
export const StoragePartName = z.enum(STORAGE_PARTS);
export type StoragePartName = z.infer<typeof StoragePartName>;

export const LogRetentionRules = z
  .object({
    days: z.number().describe('Days since a line was received.'),
    maxBytes: z.number().describe('Limit on the bytes of messages.'),
  })
  .describe('Retention of each agent’s log.');

export const RetentionRules = z
  .object({
    days: z
      .record(SessionState, z.number().nullable())
      .describe('Days since a turn was received, by the state of its session; null: forever.'),
    elsewhereDays: z.number().nullable().describe('The same, for rows without a session.'),
    auditDays: z.number().nullable().describe('Days since an audit entry was written; null: forever.'),
    maxBytes: z
      .number()
      .nullable()
      .describe('Limit on the bytes in use. Beyond it, the oldest turns are removed. Null: no limit.'),
    logs: LogRetentionRules,
  })
  .describe('Retention of history. Open turns stay at any age.');
export type RetentionRules = z.infer<typeof RetentionRules>;

export const StorageTable = z.object({
  name: z.string(),
  bytes: z.number().describe('Including its indexes.'),
  indexBytes: z.number().nullable().describe('Bytes of the indexes; null if unknown.'),
});
export type StorageTable = z.infer<typeof StorageTable>;

export const StoragePart = z.object({
  name: StoragePartName,
  bytes: z.number(),
  tables: z.array(StorageTable).describe('Largest first.'),
});
export type StoragePart = z.infer<typeof StoragePart>;

const sizes = z.object({
  at: z.number().describe('Time of the measurement, which is cached and done table by table.'),
  bytes: z.number(),
  freeBytes: z.number().describe('Freed space, reused before the database grows.'),
  method: z
    .enum(['measured', 'estimated'])
    .describe('`measured`: page by page. `estimated`: from sampled rows, so that only the sum is exact.'),
  parts: z.array(StoragePart).describe('Largest first. Their sum and the free space make up the total.'),
});
export type StorageSizes = z.infer<typeof sizes>;

export const Storage = sizes.extend({ retention: RetentionRules });
export type Storage = z.infer<typeof Storage>;
