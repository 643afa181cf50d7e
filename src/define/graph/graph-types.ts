/** What a graph's input and output are, from the handles it is made of. */
import type { AnyNode, BranchHandle, StepHandle } from "./node.js";

type CaseNodes<Node> = Node extends BranchHandle<string, infer Of, any> ? Of[keyof Of][number] : never;
/** Steps in a case may be skipped. Branches within branches are followed for two levels. */
type NodesInCases<Node> = CaseNodes<Node> | CaseNodes<CaseNodes<Node>>;
/** All nodes, those of cases included. */
type AllNodes<Node> = Node | NodesInCases<Node>;

type NameOf<Node> = Node extends { readonly name: infer Name extends string } ? Name : never;
type AfterOf<Node> = Node extends { readonly __types?: { readonly after: infer After } } ? After : never;
type StepsOf<Node> = Extract<Node, StepHandle<string, any, any, any>>;
type OutputOf<Node> = Node extends StepHandle<string, any, infer Output, any> ? Output : never;
type LastStepName<Nodes extends readonly AnyNode[]> = Exclude<
  NameOf<StepsOf<AllNodes<Nodes[number]>>>,
  AfterOf<AllNodes<Nodes[number]>>
>;

type OutputNamed<Nodes extends readonly AnyNode[], Name> =
  | OutputOf<Extract<StepsOf<AllNodes<Nodes[number]>>, { readonly name: Name }>>
  | (Name extends NameOf<NodesInCases<Nodes[number]>> ? undefined : never);

type IsUnion<T, Whole = T> = T extends Whole ? ([Whole] extends [T] ? false : true) : never;

/** That of the last step; of several last steps, an object by name. */
export type GraphOutput<Nodes extends readonly AnyNode[]> = [LastStepName<Nodes>] extends [never]
  ? void
  : true extends IsUnion<LastStepName<Nodes>>
    ? { [Name in LastStepName<Nodes>]: OutputNamed<Nodes, Name> }
    : OutputNamed<Nodes, LastStepName<Nodes>>;

type ToIntersection<Union> = (Union extends unknown ? (of: Union) => void : never) extends (of: infer All) => void
  ? All
  : never;
type InputOf<Node> =
  Node extends StepHandle<string, infer Input, any, any>
    ? { readonly input: unknown extends Input ? unknown : Input }
    : never;

/** What all its steps together want; anything when none says. */
export type GraphInput<Nodes extends readonly AnyNode[]> =
  ToIntersection<InputOf<AllNodes<Nodes[number]>>> extends { readonly input: infer Input }
    ? unknown extends Input
      ? any
      : Input
    : any;
