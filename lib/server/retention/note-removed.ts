/**
 * Notes that rows of the fleet are about to be removed: a reader from before their last change can't be told of it any
 * more, see readBounds. Runs in the transaction that removes them, in front of that.
 *
 * @param which of the rows, as SQL
 */
export function noteRemoved(table: 'tasks' | 'obligations' | 'inbox', which: string): string {
  return `UPDATE counter SET removed_up_to = max(removed_up_to, ifnull((
    SELECT max(updated_position) FROM ${table} WHERE ${which}), 0))`;
}
