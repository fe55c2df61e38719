import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Runs the files of one environment after those of the other. A worker serves one environment, so every change from
 * happy-dom to Node or back starts a process.
 */
export class ByEnvironment extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isPage = ({ moduleId }: TestSpecification) =>
      readFileSync(moduleId, 'utf8').startsWith('// @vitest-environment happy-dom');
    return [...sorted.filter(isPage), ...sorted.filter((file) => !isPage(file))];
  }
}
