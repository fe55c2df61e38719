import { fieldsOf, textOf, textsOf } from '@interlude/protocol/fields';
import type { QuarantinedRecord } from '@interlude/protocol/read-models';

/** What one session told of one run of a task: it is assigned or discarded together. */
export interface ParkedGroup {
  taskId: string;
  /** The oldest: by it the group is settled. */
  first: QuarantinedRecord;
  records: QuarantinedRecord[];
  /** The last it says in words: what the task is called, how it ended. */
  says: string;
}

/** @param records oldest first */
export function groupParked(records: readonly QuarantinedRecord[]): ParkedGroup[] {
  const groups = new Map<string, ParkedGroup>();
  for (const record of records) {
    const { taskId = '', taskRunId = null } = record.parked ?? {};
    const key = JSON.stringify([record.sessionId, taskId, taskRunId]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { taskId, first: record, records: [record], says: wordsOf(record) });
    else {
      known.records.push(record);
      known.says = wordsOf(record) || known.says;
    }
  }
  return [...groups.values()];
}

function wordsOf({ record }: QuarantinedRecord): string {
  const { event } = fieldsOf(record);
  const { name, value } = fieldsOf(event);
  const { description, status, summary } = fieldsOf(value);
  const what = typeof status === 'string' ? status : textOf(name)?.replace(/^task:/, '');
  return textsOf([what, description, summary]).join(' · ');
}
