import { inProcessServer } from '../support/server-target';
import { describeCommandsContract } from './commands-contract';

describeCommandsContract('in this process', inProcessServer);
