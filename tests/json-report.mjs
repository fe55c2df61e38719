import { JsonReporter } from 'vitest/node';

/** Vitest's JSON report, plus the errors of hooks with what differed. */
export default class JsonReport extends JsonReporter {
  /** @type {Map<string, string>} by absolute path */
  #messages = new Map();

  constructor() {
    super({});
  }

  /**
   * @override
   * @param {readonly import('vitest/node').TestModule[]} testModules
   */
  async onTestRunEnd(testModules) {
    for (const module of testModules) {
      const errors = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors());
      this.#messages.set(module.moduleId, errors.map(({ message, diff = '' }) => `${message}\n${diff}`).join('\n'));
    }
    await super.onTestRunEnd(testModules);
  }

  /**
   * @override
   * @param {string} report
   */
  async writeReport(report) {
    const whole = JSON.parse(report);
    for (const file of whole.testResults) file.message = this.#messages.get(file.name) || file.message;
    await super.writeReport(JSON.stringify(whole));
  }
}
