import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { truncateText } from '@interlude/protocol/text';
import { CliError, EXIT } from '../cli/command';

/**
 * Default agent id of a folder. Includes the machine name, since folders on two machines may share a name.
 * @param program the agent program, where a folder may have several
 */
export function agentIdOf(cwd: string, program?: string): string {
  const folder = nameOf(cwd.split(/[/\\]/).at(-1) ?? '') || 'root';
  const before = program === undefined ? '' : `${truncateText(nameOf(program), 40)}-`;
  return `${before}${truncateText(folder, 80)}@${hostname().split('.')[0]}`;
}

/** @throws CliError if the folder does not exist */
export async function folderOf(path: string): Promise<string> {
  const folder = resolve(path);
  const isFolder = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new CliError(EXIT.failed, `${folder} is not a folder`);
  return folder;
}

function nameOf(text: string): string {
  return text.replaceAll(/[^\w.-]+/g, '-');
}
