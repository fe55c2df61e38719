import { inProcessServer } from '../support/server-target';
import { describeTaskOutputContract } from './task-output-contract';

describeTaskOutputContract('in this process', inProcessServer);
