import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The beginning of a background command that waits in its folder until `letGo`. */
export const HOLD = 'until [ -e go ]; do sleep 0.1; done; ';

/** @param cwd the folder of the commands that wait */
export async function letGo(cwd: string): Promise<void> {
  await writeFile(join(cwd, 'go'), '');
}
