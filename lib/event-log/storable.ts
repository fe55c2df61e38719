import { columnText } from '@/db/column-text';

/** Cells whose texts any column can hold. Objects stay: they become JSON, which escapes what columns can't hold. */
export function storable<T>(cells: T[]): T[] {
  return cells.map((cell) => (typeof cell === 'string' ? (columnText(cell) as T & string) : cell));
}
