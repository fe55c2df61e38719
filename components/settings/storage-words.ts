import type { StoragePartName } from '@interlude/protocol/storage';

/** What the parts of the database are called, and what is in each. */
export const PART_WORDS: Record<StoragePartName, { name: string; about: string }> = {
  events: { name: 'Events', about: 'what agents did' },
  views: { name: 'Sessions and agents', about: 'what lists and transcripts are read from' },
  logs: { name: 'Log lines', about: 'the logs of agents' },
  search: { name: 'Search indexes', about: 'by which logs and sessions are searched' },
  commands: { name: 'Commands and inbox', about: 'what people asked for, and what needed them' },
  attachments: { name: 'Attachments', about: 'images and files that people sent' },
  audit: { name: 'Audit', about: 'what people and programs did' },
  quarantine: { name: 'Quarantine', about: 'records that could not be taken' },
  insights: { name: 'Insights', about: 'failures and signals found in logs' },
  webhooks: { name: 'Webhooks', about: 'what was sent to the webhook' },
  access: { name: 'Access', about: 'tokens, sign-ins and members' },
  rest: { name: 'The rest', about: 'what the database needs for itself' },
};
