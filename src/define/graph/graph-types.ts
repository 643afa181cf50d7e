/** Infers the input and output types of a graph from its nodes. */
import type { AnyNode, BranchHandle, StepHandle } from "./node.js";

type CaseNodes<Node> = Node extends BranchHandle<string, infer Of, any> ? Of[keyof Of][number] : never;
/** The nodes in cases of branches, which may be skipped. The type covers branches and branches inside their cases. */
type NodesInCases<Node> = CaseNodes<Node> | CaseNodes<CaseNodes<Node>>;
/** All nodes, including the nodes in cases. */
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

/** The output of the last step; if several steps have no successor, an object of their outputs by name. */
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

/** The intersection of the inputs that its steps declare; any if no step declares one. */
export type GraphInput<Nodes extends readonly AnyNode[]> =
  ToIntersection<InputOf<AllNodes<Nodes[number]>>> extends { readonly input: infer Input }
    ? unknown extends Input
      ? any
      : Input
    : any;
